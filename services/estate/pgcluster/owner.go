package pgcluster

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user whom the cluster runs as.
type owner struct{ uid, gid int }

// ownerForRoot returns the user "postgres" when this process is root, for
// PostgreSQL refuses to run as root, and nil when it is not.
func ownerForRoot() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("pgcluster: PostgreSQL does not run as root, and there is no user to run it as: %w", err)
	}
	uid, errUID := strconv.Atoi(u.Uid)
	gid, errGID := strconv.Atoi(u.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, fmt.Errorf("pgcluster: user postgres: %w", err)
	}
	return &owner{uid: uid, gid: gid}, nil
}

func (o *owner) credential() *syscall.Credential {
	return &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
}

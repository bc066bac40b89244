package filter_test

import (
	"testing"

	"github.com/google/uuid"

	"specialroutes.example/gateway/internal/filter"
)

func TestARandomIDIsAUUIDLikeNoOther(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for range 1000 {
		id := filter.RandomID()
		u, err := uuid.Parse(id)
		if err != nil || u.String() != id || u.Version() != 4 || u.Variant() != uuid.RFC4122 || !filter.UsableCorrelationID(id) || seen[id] {
			t.Fatalf("RandomID() = %q: %v, version %v, variant %v", id, err, u.Version(), u.Variant())
		}
		seen[id] = true
	}
}

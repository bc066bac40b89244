package api

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// maxSetAside is how many services a gateway may name whose record it cannot use, and
// how many instances whose labels.
const maxSetAside = 50

var (
	gatewayPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[\x21-\x7E]{1,64}$`)
)

// readGateway reads what a gateway says of itself; its ID is "" when it says
// nothing. All but the ID is for people, and ignored where it makes no sense.
func readGateway(c *gin.Context) (store.Gateway, error) {
	var g store.Gateway
	id, given := c.GetQuery("gateway")
	if given && !gatewayPattern.MatchString(id) {
		return g, badParameter("gateway", "want 1 to 64 of letters, digits and . _ - inside")
	}
	g.ID = id
	if v := c.Query("version"); versionPattern.MatchString(v) {
		g.Version = v
	}
	g.SetAside = readSetAside(c.Query("setAside"))
	return g, nil
}

// readSetAside reads names of services and of instances, and returns them in order. An
// instance is service/ID, with the ID escaped like in a path, for it may hold a comma.
func readSetAside(text string) []string {
	var services, instances []string
	for name := range strings.SplitSeq(text, ",") {
		service, escaped, isInstance := strings.Cut(name, "/")
		if !isInstance {
			if len(services) < maxSetAside && (name == routing.Wildcard || namePattern.MatchString(name)) {
				services = append(services, name)
			}
			continue
		}
		id, err := url.PathUnescape(escaped)
		if err == nil && len(instances) < maxSetAside && namePattern.MatchString(service) && routing.ValidInstance(id) {
			instances = append(instances, store.Instance{Service: service, ID: id}.Name())
		}
	}
	all := append(services, instances...)
	slices.Sort(all)
	return all
}

type gatewayList struct {
	Gateways []gatewayEntry `json:"gateways"`
}

type gatewayEntry struct {
	ID       string    `json:"id"`
	Version  string    `json:"version"`
	Cursor   string    `json:"cursor"`
	Revision int64     `json:"revision"`
	SetAside []string  `json:"setAside"`
	Seen     time.Time `json:"seen"`
	Live     bool      `json:"live"`
	Follows  bool      `json:"follows"`
	Left     bool      `json:"left"`
}

func (a *api) listGateways(c *gin.Context) error {
	if t := tokenOf(c); !t.All() {
		return errTokenForAll(t.Name)
	}
	known, err := a.Gateways.List(c.Request.Context())
	if err != nil {
		return err
	}
	list := gatewayList{Gateways: []gatewayEntry{}}
	for _, g := range known {
		list.Gateways = append(list.Gateways, gatewayEntry{
			ID: g.ID, Version: g.Version, Cursor: feedCursor(g.Cursor), Revision: g.Cursor.Revision,
			SetAside: append([]string{}, g.SetAside...), Seen: g.Seen, Live: !g.Left && g.Age <= gateways.LiveFor, Follows: g.Follows, Left: g.Left,
		})
	}
	return writeJSON(c, http.StatusOK, list)
}

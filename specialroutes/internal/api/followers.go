package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"specialroutes.example/services/routing"
	"specialroutes.example/specialroutes/internal/gateways"
	"specialroutes.example/specialroutes/internal/store"
)

// maxSetAside is how many services a gateway may name that it cannot use.
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
	for name := range strings.SplitSeq(c.Query("setAside"), ",") {
		if len(g.SetAside) < maxSetAside && (name == routing.Wildcard || namePattern.MatchString(name)) {
			g.SetAside = append(g.SetAside, name)
		}
	}
	slices.Sort(g.SetAside)
	return g, nil
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
			SetAside: append([]string{}, g.SetAside...), Seen: g.Seen, Live: g.Age <= gateways.LiveFor, Follows: g.Follows,
		})
	}
	return writeJSON(c, http.StatusOK, list)
}

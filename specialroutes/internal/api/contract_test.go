package api

import (
	"regexp"
	"testing"

	"github.com/gin-gonic/gin"

	"specialroutes.example/specialroutes/internal/api/contracttest"
)

var parameterPattern = regexp.MustCompile(`:([A-Za-z]+)`)

func TestDocumentAndRoutesAreTheSame(t *testing.T) {
	t.Parallel()
	document := contracttest.Load(t, openapiDocument).Operations()
	engine := engineWithoutStore(t)
	for _, missing := range undocumented(engine.Routes(), document) {
		t.Errorf("%s is a route, but not in openapi.yaml", missing)
	}
	routes := map[string]bool{}
	for _, r := range engine.Routes() {
		routes[operationOf(r)] = true
	}
	for o := range document {
		if !routes[o] {
			t.Errorf("%s is in openapi.yaml, but no route", o)
		}
	}
}

func TestARouteThatIsNotInTheDocumentIsFound(t *testing.T) {
	t.Parallel()
	engine := engineWithoutStore(t)
	engine.GET("/v1/secret/:name", func(*gin.Context) {})
	got := undocumented(engine.Routes(), contracttest.Load(t, openapiDocument).Operations())
	if len(got) != 1 || got[0] != "GET /v1/secret/{name}" {
		t.Errorf("undocumented = %q, want the new route alone", got)
	}
}

func undocumented(routes gin.RoutesInfo, document map[string]bool) []string {
	var missing []string
	for _, r := range routes {
		if o := operationOf(r); !document[o] {
			missing = append(missing, o)
		}
	}
	return missing
}

// operationOf writes a route as the document does.
func operationOf(r gin.RouteInfo) string {
	return r.Method + " " + parameterPattern.ReplaceAllString(r.Path, "{$1}")
}

package api

import (
	"regexp"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
)

const correlationHeader = "tmx-correlation-id"

var correlationPattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,128}$`)

// correlate returns the request's correlation ID, or a new one when it has none
// that can be used, and puts it on the answer.
func correlate(c *gin.Context) string {
	values := c.Request.Header.Values(correlationHeader)
	id := ""
	if len(values) == 1 && correlationPattern.MatchString(values[0]) {
		id = values[0]
	} else {
		id = uuid.NewString()
	}
	c.Header(correlationHeader, id)
	return id
}

package routing

import "net/http"

// maxRead is the longest value of a header that routing reads, in bytes.
const maxRead = 255

// Refused is how the gateway answers a request that it could read in another way than
// the upstream, in the place of a decision.
type Refused struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// The codes of a Refused.
const (
	CodeBadPath   = "bad_path"
	CodeBadHeader = "bad_header"
)

// Refuse says how the gateway refuses a request, nil when it decides.
func (rt *Route) Refuse(req *Request) *Refused {
	if err := CheckPath(req.Path); err != nil {
		return &Refused{http.StatusBadRequest, CodeBadPath, err.Error()}
	}
	if name, fault := rt.HeaderFault(req.Header); fault != "" {
		return &Refused{http.StatusBadRequest, CodeBadHeader, HeaderRefusal(name, fault)}
	}
	return nil
}

// HeaderRefusal says in a sentence for the client what HeaderFault has found.
func HeaderRefusal(name, fault string) string {
	return "the header " + name + ", which routing reads, " + fault
}

// HeaderFault finds a header that routing reads and that does not mean one thing to
// everybody: more than one line, over 255 bytes, or something else than visible ASCII
// and spaces. Both are "" when there is none. It allocates nothing.
func (rt *Route) HeaderFault(h http.Header) (name, fault string) {
	for _, name := range rt.Headers() {
		if fault := faultOf(h[name]); fault != "" {
			return name, fault
		}
	}
	return "", ""
}

func faultOf(lines []string) string {
	switch {
	case len(lines) == 0:
		return ""
	case len(lines) > 1:
		return "comes more than once"
	case len(lines[0]) > maxRead:
		return "is longer than 255 bytes"
	case !isASCII(lines[0]):
		return "holds something else than visible ASCII"
	}
	return ""
}

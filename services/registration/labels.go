package registration

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ParseLabels reads labels written as "version=1.0.0,zone=a". Blanks around a name
// or a value do not count. A value may be empty, and may hold "=".
func ParseLabels(text string) (map[string]string, error) {
	labels := make(map[string]string)
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not name=value", strings.TrimSpace(part))
		}
		if _, twice := labels[name]; twice {
			return nil, fmt.Errorf("the label %q is given twice", name)
		}
		labels[name] = value
	}
	return labels, nil
}

// metaName is what Consul takes for the name of a meta value, of at most 128 bytes.
var metaName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// split puts labels into the meta where Consul takes them there, and else among the
// tags, as name=value.
func split(labels map[string]string) (meta map[string]string, tags []string) {
	meta = make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if metaName.MatchString(name) {
			meta[name] = labels[name]
		} else {
			tags = append(tags, name+"="+labels[name])
		}
	}
	return meta, tags
}

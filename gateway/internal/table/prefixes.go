package table

import "strings"

// prefixes finds the longest of many prefixes that a path has, in as many steps
// as the deepest prefix has segments, however many prefixes there are and
// however long the path is.
type prefixes struct {
	routes map[string]*Route
	depth  int // slashes in the prefix that has most of them
	length int // of the longest prefix
}

func newPrefixes() *prefixes { return &prefixes{routes: make(map[string]*Route)} }

// add reports false when the prefix is there already.
func (p *prefixes) add(r *Route) bool {
	if p.routes[r.Prefix] != nil {
		return false
	}
	p.routes[r.Prefix] = r
	p.depth = max(p.depth, strings.Count(r.Prefix, "/"))
	p.length = max(p.length, len(r.Prefix))
	return true
}

// longest returns the route with the longest prefix of path that ends at a
// segment's border, nil when there is none. path starts with "/".
func (p *prefixes) longest(path string) *Route {
	end := p.reach(path)
	for {
		if end <= p.length {
			if r := p.routes[path[:end]]; r != nil {
				return r
			}
		}
		if end == 0 {
			return nil
		}
		end = strings.LastIndexByte(path[:end], '/')
	}
}

// reach returns where the part of path ends that has as many segments as the
// deepest prefix.
func (p *prefixes) reach(path string) int {
	end := 0
	for range p.depth {
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			return len(path)
		}
		end += 1 + next
	}
	return end
}

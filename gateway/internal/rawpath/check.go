package rawpath

import "specialroutes.example/services/routing"

// Check reports why a path is refused, nil when it is not. The policy is routing's, so
// that specialroutes explains what the gateway does.
func Check(path string) error { return routing.CheckPath(path) }

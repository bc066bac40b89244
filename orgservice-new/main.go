// Command orgservice-new is the organization service's new version: NEW:: stands
// before its contact names. No path of the gateway leads to it; a route record
// does.
package main

import "specialroutes.example/services/organization"

func main() { organization.Main("orgservice-new", "127.0.0.1:8087", "NEW::") }

// Command orgservice-old is the organization service as it was: OLD:: stands
// before its contact names.
package main

import "specialroutes.example/services/organization"

func main() { organization.Main("orgservice-old", "127.0.0.1:8085", "OLD::") }

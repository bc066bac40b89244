// Command licensingservice is the demo's licensing service.
package main

import "specialroutes.example/services/licensing"

func main() { licensing.Main() }

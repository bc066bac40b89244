module specialroutes.example/services

go 1.26.0

require (
	github.com/go-json-experiment/json v1.27.2
	github.com/goccy/go-yaml v1.19.2
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

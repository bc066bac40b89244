module specialroutes.example/orgservice-new

go 1.26.0

require specialroutes.example/services v0.0.0

require github.com/go-json-experiment/json v1.27.2 // indirect

replace specialroutes.example/services => ../services

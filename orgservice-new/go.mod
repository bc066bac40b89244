module specialroutes.example/orgservice-new

go 1.26.0

require specialroutes.example/services v0.0.0

replace specialroutes.example/services => ../services

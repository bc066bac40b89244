module specialroutes.example/migrations

go 1.26.0

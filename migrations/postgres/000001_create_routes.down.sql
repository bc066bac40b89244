DROP TABLE history;
DROP TABLE routes;
DROP TABLE counter;

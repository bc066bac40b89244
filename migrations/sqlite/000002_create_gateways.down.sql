DROP TABLE gateways;

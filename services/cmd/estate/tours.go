package main

import "specialroutes.example/services/estate"

// tours returns the instances that the tours of the README choose among by labels.
// They have names of their own in the registry, to which the record of each tour
// leads, so that they answer nothing before and nothing afterwards.
// docker-compose.yml has the same ones.
func tours() []estate.Instance {
	const versions, grey, lanes = "organization-versions", "organization-grey", "organization-lanes"
	return []estate.Instance{
		{ID: "org-1.0.0", Service: versions, Labels: map[string]string{"version": "1.0.0"}},
		{ID: "org-2.0.0", Service: versions, Labels: map[string]string{"version": "2.0.0"}},
		{ID: "org-beta-one", Service: grey, Labels: map[string]string{"app": "clientA", "version": "beta-one", "zone": "a"}},
		{ID: "org-beta-two", Service: grey, Labels: map[string]string{"app": "clientA", "version": "beta-two", "zone": "b"}},
		{ID: "org-common", Service: lanes},
		{ID: "org-alice", Service: lanes, Labels: map[string]string{"zone": "alice"}, Prefix: "ALICE::"},
	}
}

package estate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// listedInterval is how often Consul is asked while instances are missing.
const listedInterval = 50 * time.Millisecond

// awaitListed returns when Consul lists every instance that gateways call, or with an
// error when that did not happen in time or ctx ends.
func awaitListed(ctx context.Context, o Options) error {
	wanted := map[string][]string{OrganizationName: {OrgServiceOld}, OrgServiceNew: {OrgServiceNew}, licensingName: {LicensingService}}
	for _, i := range o.Instances {
		wanted[i.Service] = append(wanted[i.Service], i.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(listedInterval)
	defer tick.Stop()
	for {
		err := allListed(ctx, o.Consul, wanted)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("estate: Consul does not list the instances: %w; at last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// allListed returns an error that names an instance that is not listed as passing.
func allListed(ctx context.Context, agent string, wanted map[string][]string) error {
	for service, ids := range wanted {
		listed, err := passing(ctx, agent, service)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if !listed[id] {
				return fmt.Errorf("%s of %s is missing", id, service)
			}
		}
	}
	return nil
}

// passing returns the IDs of a service's instances whose checks pass.
func passing(ctx context.Context, agent, service string) (map[string]bool, error) {
	address := "http://" + agent + "/v1/health/service/" + url.PathEscape(service) + "?passing=1"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	var entries []struct{ Service struct{ ID string } }
	if err := json.NewDecoder(res.Body).Decode(&entries); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	listed := make(map[string]bool, len(entries))
	for _, e := range entries {
		listed[e.Service.ID] = true
	}
	return listed, nil
}

package estate

import (
	"fmt"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// gatewayYAML returns the configuration of a gateway: the book's table and
// settings on the estate's addresses, with the caller's YAML over it.
func gatewayYAML(name string, o Options, at addresses, i int) ([]byte, error) {
	settings := map[string]any{
		"id":     name,
		"listen": at.gateways[i].data,
		"admin":  at.gateways[i].admin,
		"routes": []any{
			map[string]any{"prefix": "/api/organization", "service": OrganizationName},
			map[string]any{"prefix": "/api/licensing", "service": licensingName},
		},
		"sensitiveHeaders": []any{"Cookie", "Set-Cookie"},
		"exposeRoute":      true,
		"timeouts":         map[string]any{"response": "2.5s"},
		"records": map[string]any{
			"url":  []any{"http://" + at.specialRoutes},
			"file": filepath.Join(o.Dir, name+"-records.json"),
		},
		"drain": map[string]any{"delay": drainDelay, "limit": "30s"},
	}
	if o.Consul == "" {
		settings["instances"] = fixedInstances(o, at)
	} else {
		settings["registry"] = map[string]any{"consul": map[string]any{"address": o.Consul}}
		settings["registration"] = map[string]any{"agent": o.Consul, "service": gatewayName}
	}
	var over map[string]any
	if err := yaml.Unmarshal([]byte(o.GatewayYAML), &over); err != nil {
		return nil, fmt.Errorf("estate: GatewayYAML: %w", err)
	}
	text, err := yaml.Marshal(merge(settings, over))
	if err != nil {
		return nil, fmt.Errorf("estate: the gateway's configuration: %w", err)
	}
	return text, nil
}

// fixedInstances is the list of a gateway without Consul.
func fixedInstances(o Options, at addresses) map[string]any {
	listed := map[string][]any{
		OrganizationName: {map[string]any{"id": OrgServiceOld, "address": at.old}},
		licensingName:    {map[string]any{"id": LicensingService, "address": at.licensing}},
	}
	for i, instance := range o.Instances {
		entry := map[string]any{"id": instance.ID, "address": at.instances[i]}
		if len(instance.Labels) > 0 {
			entry["labels"] = instance.Labels
		}
		listed[instance.Service] = append(listed[instance.Service], entry)
	}
	settings := make(map[string]any, len(listed)) // as merge needs it
	for service, instances := range listed {
		settings[service] = instances
	}
	return settings
}

// merge lays over onto base: mappings are merged, all else is replaced.
func merge(base, over map[string]any) map[string]any {
	for key, value := range over {
		inner, isMapping := value.(map[string]any)
		outer, wasMapping := base[key].(map[string]any)
		if isMapping && wasMapping {
			value = merge(outer, inner)
		}
		base[key] = value
	}
	return base
}

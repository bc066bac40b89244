package registry

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// knownText is Known as docs/records-file.md describes it.
type knownText struct {
	Service   string         `json:"service"`
	AsOf      time.Time      `json:"asOf"`
	Instances []instanceText `json:"instances"`
}

type instanceText struct {
	ID       string            `json:"id"`
	Address  string            `json:"address"`
	Labels   map[string]string `json:"labels,omitempty"`
	FromMeta []string          `json:"fromMeta,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
}

// lenient, because registries hold what they like: an ID may be no UTF-8.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// MarshalKnown makes JSON of what is known.
func MarshalKnown(known []Known) ([]byte, error) {
	texts := make([]knownText, 0, len(known))
	for _, k := range known {
		t := knownText{Service: k.Service, AsOf: k.AsOf.UTC(), Instances: make([]instanceText, 0, len(k.Instances))}
		for _, i := range k.Instances {
			t.Instances = append(t.Instances, instanceText{i.ID, i.Address, i.Labels, i.FromMeta, i.Warnings})
		}
		texts = append(texts, t)
	}
	return json.Marshal(texts, lenient)
}

// UnmarshalKnown is the inverse of MarshalKnown. Members that it does not know are
// ignored.
func UnmarshalKnown(text []byte) ([]Known, error) {
	var texts []knownText
	if err := json.Unmarshal(text, &texts, lenient); err != nil {
		return nil, err
	}
	known := make([]Known, 0, len(texts))
	for _, t := range texts {
		k := Known{Service: t.Service, AsOf: t.AsOf}
		for _, i := range t.Instances {
			k.Instances = append(k.Instances, Instance{
				ID: i.ID, Service: t.Service, Address: i.Address, Labels: i.Labels, FromMeta: i.FromMeta, Warnings: i.Warnings,
			})
		}
		known = append(known, k)
	}
	return known, nil
}

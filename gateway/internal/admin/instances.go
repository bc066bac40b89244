package admin

import (
	"net/http"
	"slices"
	"time"

	"specialroutes.example/gateway/internal/balance"
	"specialroutes.example/gateway/internal/records"
	"specialroutes.example/gateway/internal/registry"
)

// shownInstances is the body of /instances.
type shownInstances struct {
	Source     registry.Source `json:"source"`
	AgeSeconds *float64        `json:"ageSeconds"`          // null: there are none
	Errors     int64           `json:"errors,omitempty"`    // questions that failed since the start
	LastError  string          `json:"lastError,omitempty"` // of the last of them

	LastErrorAt  *time.Time                 `json:"lastErrorAt,omitempty"`
	FailingSince *time.Time                 `json:"failingSince,omitempty"` // absent: the last questions did not fail
	Services     map[string][]shownInstance `json:"services"`
	SetAside     []shownUnusable            `json:"setAside"`
	Endpoints    []shownEndpoint            `json:"endpoints"`

	// ChangesWaiting are operators' changes of labels of instances that are not listed
	// now, ChangesSetAside those that cannot be used.
	ChangesWaiting  []shownChange `json:"changesWaiting"`
	ChangesSetAside []shownChange `json:"changesSetAside"`
}

// shownInstance is an instance as /instances shows it.
type shownInstance struct {
	ID      string            `json:"id"`
	Address string            `json:"address"`
	Labels  map[string]string `json:"labels,omitempty"` // those that count

	// Origins says of each label where it comes from, hidden ones too.
	Origins  map[string]shownOrigin `json:"origins,omitempty"`
	Warnings []string               `json:"warnings,omitempty"`
	shownHealth

	// Unconfirmed: the registry was away and has not listed it since.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}

// shownOrigin is where a label comes from.
type shownOrigin struct {
	From       string     `json:"from"`                 // tag, meta, settings or operator
	Hidden     bool       `json:"hidden,omitempty"`     // by the operator
	Registered *string    `json:"registered,omitempty"` // the value that an operator's change covers
	Revision   int64      `json:"revision,omitempty"`   // of the change
	Ends       *time.Time `json:"ends,omitempty"`       // of the change
}

// shownHealth is how a target is doing.
type shownHealth struct {
	Circuit  string     `json:"circuit"`            // closed, open or half-open
	Failures int        `json:"failures,omitempty"` // in a row
	Until    *time.Time `json:"until,omitempty"`    // of an open circuit
	Active   int64      `json:"active"`             // requests in flight
}

func showHealth(h balance.Health) shownHealth {
	shown := shownHealth{Circuit: h.Circuit, Failures: h.Failures, Active: h.Active}
	if !h.Until.IsZero() {
		shown.Until = new(h.Until.UTC())
	}
	return shown
}

// shownEndpoint is the endpoint of a variant.
type shownEndpoint struct {
	Endpoint string `json:"endpoint"`
	shownHealth
}

// shownUnusable is an instance that cannot be used.
type shownUnusable struct {
	Service string `json:"service"`
	ID      string `json:"id"`
	Reason  string `json:"reason"`
}

// shownChange is an operator's change of labels.
type shownChange struct {
	Service  string     `json:"service"`
	ID       string     `json:"id"`
	Revision int64      `json:"revision"` // -1: it came without one
	Ends     *time.Time `json:"ends,omitempty"`
	Reason   string     `json:"reason,omitempty"` // it cannot be used
	Since    *time.Time `json:"since,omitempty"`
}

// instances answers /instances: the registry's instances by service, with what
// operators have changed and how each is doing. With ?service= it shows one service
// only.
func (o Options) instances(w http.ResponseWriter, req *http.Request) {
	snapshot, st := o.Registry.Load(), o.Registry.Status()
	shown := shownInstances{
		Source: st.Source, Errors: st.Errors, LastError: st.LastError, Services: make(map[string][]shownInstance),
		SetAside: []shownUnusable{}, Endpoints: []shownEndpoint{}, ChangesWaiting: []shownChange{}, ChangesSetAside: []shownChange{},
	}
	shown.LastErrorAt, shown.FailingSince = stamp(st.LastErrorAt), stamp(st.FailingSince)
	if st.Source != registry.None {
		shown.AgeSeconds = o.age(st.Since)
	}
	only := req.FormValue("service")
	wanted := func(service string) bool { return only == "" || service == only }
	for _, name := range slices.DeleteFunc(snapshot.Services(), func(s string) bool { return !wanted(s) }) {
		shown.Services[name] = []shownInstance{}
		for _, i := range snapshot.Instances(name) {
			shown.Services[name] = append(shown.Services[name], o.showInstance(i))
		}
	}
	for _, s := range snapshot.SetAside() {
		if wanted(s.Service) {
			shown.SetAside = append(shown.SetAside, shownUnusable(s))
		}
	}
	for _, e := range o.Balancer.Endpoints() {
		shown.Endpoints = append(shown.Endpoints, shownEndpoint{e.Endpoint, showHealth(e.Health)})
	}
	for _, state := range o.Records.Load().LabelStates() {
		if wanted(state.Service) {
			o.addChange(&shown, state, snapshot)
		}
	}
	write(w, shown)
}

// addChange adds a change of labels where no instance shows it.
func (o Options) addChange(shown *shownInstances, s records.LabelState, snapshot *registry.Snapshot) {
	if a := s.SetAside; a != nil {
		shown.ChangesSetAside = append(shown.ChangesSetAside,
			shownChange{Service: s.Service, ID: s.ID, Revision: a.Revision, Reason: a.Reason, Since: &a.Since})
	}
	if _, listed := registry.Find(snapshot.Instances(s.Service), s.ID); listed || s.Changes == nil || !o.Now().Before(s.Ends) {
		return
	}
	shown.ChangesWaiting = append(shown.ChangesWaiting, shownChange{Service: s.Service, ID: s.ID, Revision: s.Revision, Ends: &s.Ends})
}

func (o Options) showInstance(i *registry.Instance) shownInstance {
	return shownInstance{
		ID: i.ID, Address: i.Address, Labels: i.Labels, Origins: o.origins(i), Warnings: i.Warnings,
		shownHealth: showHealth(o.Balancer.Health(i.Service, i.ID)), Unconfirmed: i.Unconfirmed,
	}
}

// origins says of each label of an instance where it comes from.
func (o Options) origins(i *registry.Instance) map[string]shownOrigin {
	origins := make(map[string]shownOrigin, len(i.Labels))
	for name := range i.Labels {
		origins[name] = shownOrigin{From: o.registered(i, name)}
	}
	if i.Operator == nil {
		return origins
	}
	for name, value := range i.Operator.Labels {
		origin := shownOrigin{From: "operator", Hidden: value == nil, Revision: i.Operator.Revision, Ends: &i.Operator.Ends}
		if was, ok := i.Registered[name]; ok {
			origin.Registered = &was
		}
		origins[name] = origin
	}
	return origins
}

// registered says where a label comes from that no operator has changed.
func (o Options) registered(i *registry.Instance, name string) string {
	if o.Config.Registry.Consul.Address == "" {
		return "settings"
	}
	if _, found := slices.BinarySearch(i.FromMeta, name); found {
		return "meta"
	}
	return "tag"
}

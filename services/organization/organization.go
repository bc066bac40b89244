// Package organization is the demo's organization service. It exists twice, as
// the old and the new version of one service: they differ in the prefix that they
// put before a contact's name, so that an answer shows which of them gave it.
package organization

import (
	"net/http"
	"net/url"

	"specialroutes.example/services/internal/demo"
)

// Organization is a customer.
type Organization struct {
	ID           string `json:"id"` // any text; those of the seed are not all UUIDs
	Name         string `json:"name"`
	ContactName  string `json:"contactName"`
	ContactEmail string `json:"contactEmail"`
	ContactPhone string `json:"contactPhone"`
}

// Seed returns the organizations that a service begins with.
func Seed() []Organization {
	return []Organization{
		{
			ID: "e254f8c-c442-4ebe-a82a-e2fc1d1ff78a", Name: "customer-crm-co",
			ContactName: "Mark Balster", ContactEmail: "mark.balster@custcrmco.com", ContactPhone: "823-555-1212",
		},
		{
			ID: "442adb6e-fa58-47f3-9ca2-ed1fecdfe86c", Name: "HR-PowerSuite",
			ContactName: "Doug Drewry", ContactEmail: "doug.drewry@hr.com", ContactPhone: "920-555-1212",
		},
	}
}

// api serves the organizations.
type api struct {
	prefix string // of a contact's name, in answers to GET
	rows   *demo.Table[string, Organization]
}

// NewHandler returns the REST API on a copy of the given organizations, at
// /v1/organizations/{id}. GET puts the prefix before contactName. PUT replaces or
// creates (200, 201), POST only creates (409 when there is one), DELETE removes
// (204). It is safe for concurrent use.
func NewHandler(prefix string, rows []Organization) http.Handler {
	byID := make(map[string]Organization, len(rows))
	for _, o := range rows {
		byID[o.ID] = o
	}
	a := &api{prefix: prefix, rows: demo.NewTable(byID)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", demo.NoSuchPath)
	mux.Handle("/v1/organizations/{id}", demo.Methods{
		http.MethodGet: a.get, http.MethodPut: a.put, http.MethodPost: a.post, http.MethodDelete: a.delete,
	})
	return mux
}

func (a *api) get(w http.ResponseWriter, req *http.Request) error {
	id, err := demo.PathID(req, "id")
	if err != nil {
		return err
	}
	o, found := a.rows.Find(id)
	if !found {
		return notFound()
	}
	o.ContactName = a.prefix + o.ContactName
	return demo.Write(w, http.StatusOK, o)
}

func (a *api) put(w http.ResponseWriter, req *http.Request) error {
	o, err := read(w, req)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if a.rows.Put(o.ID, o) {
		status = http.StatusOK
	}
	return demo.Write(w, status, o)
}

func (a *api) post(w http.ResponseWriter, req *http.Request) error {
	o, err := read(w, req)
	if err != nil {
		return err
	}
	if !a.rows.Insert(o.ID, o) {
		return demo.Fail(http.StatusConflict, "organization_exists", "there is an organization of this ID; PUT replaces it")
	}
	w.Header().Set("Location", "/v1/organizations/"+url.PathEscape(o.ID))
	return demo.Write(w, http.StatusCreated, o)
}

func (a *api) delete(w http.ResponseWriter, req *http.Request) error {
	id, err := demo.PathID(req, "id")
	if err != nil {
		return err
	}
	if !a.rows.Delete(id) {
		return notFound()
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// read takes an organization from a request; the ID is that of the path.
func read(w http.ResponseWriter, req *http.Request) (Organization, error) {
	id, err := demo.PathID(req, "id")
	if err != nil {
		return Organization{}, err
	}
	var o Organization
	if err := demo.Read(w, req, &o); err != nil {
		return Organization{}, err
	}
	mistakes := append(demo.SameID("/id", o.ID, id), demo.Required("/name", o.Name)...)
	if len(mistakes) > 0 {
		return Organization{}, demo.Invalid(mistakes...)
	}
	o.ID = id
	return o, nil
}

func notFound() error {
	return demo.Fail(http.StatusNotFound, "organization_not_found", "there is no organization of this ID")
}

package licensing

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/organization"
)

// Organizations is what the service asks about a license's organization. The
// error is ErrNoOrganization, or an *UnavailableError when nobody can tell.
type Organizations interface {
	Organization(ctx context.Context, id string) (organization.Organization, error)
}

// key is what licenses are kept by: an ID means something within its organization.
type key struct{ organization, license string }

// api serves the licenses.
type api struct {
	organizations Organizations
	rows          *demo.Table[key, License]
}

// NewHandler returns the REST API on a copy of the given licenses:
//
//	/v1/organizations/{organizationId}/licenses              GET all, POST one
//	/v1/organizations/{organizationId}/licenses/{licenseId}  GET, PUT, POST, DELETE
//
// GET tells of the organization as it is at this moment. Where that cannot be
// had, it answers 404 if there is no such organization, 504 if no answer came in
// time, and else 502: a license without its organization would be a guess. Writes
// ask nobody. PUT replaces or creates (200, 201), POST only creates (201, or 409),
// DELETE removes (204). It is safe for concurrent use.
func NewHandler(organizations Organizations, rows []License) http.Handler {
	byKey := make(map[key]License, len(rows))
	for _, l := range rows {
		byKey[key{l.OrganizationID, l.LicenseID}] = l
	}
	a := &api{organizations: organizations, rows: demo.NewTable(byKey)}
	mux := http.NewServeMux()
	mux.HandleFunc("/", demo.NoSuchPath)
	mux.Handle("/v1/organizations/{organizationId}/licenses", demo.Methods{
		http.MethodGet: a.list, http.MethodPost: a.post,
	})
	mux.Handle("/v1/organizations/{organizationId}/licenses/{licenseId}", demo.Methods{
		http.MethodGet: a.get, http.MethodPut: a.put, http.MethodPost: a.post, http.MethodDelete: a.delete,
	})
	return mux
}

// pathKey returns the IDs of the path; the license's is "" where there is none.
func pathKey(req *http.Request) (key, error) {
	org, err := demo.PathID(req, "organizationId")
	if err != nil {
		return key{}, err
	}
	license, err := demo.PathID(req, "licenseId")
	return key{org, license}, err
}

func (a *api) get(w http.ResponseWriter, req *http.Request) error {
	k, err := pathKey(req)
	if err != nil {
		return err
	}
	l, found := a.rows.Find(k)
	if !found {
		return notFound()
	}
	o, err := a.organizations.Organization(req.Context(), k.organization)
	if err != nil {
		return organizationFailure(err)
	}
	return demo.Write(w, http.StatusOK, l.of(o))
}

func (a *api) list(w http.ResponseWriter, req *http.Request) error {
	k, err := pathKey(req)
	if err != nil {
		return err
	}
	o, err := a.organizations.Organization(req.Context(), k.organization)
	if err != nil {
		return organizationFailure(err)
	}
	licenses := a.rows.Select(func(row key) bool { return row.organization == k.organization })
	for i := range licenses {
		licenses[i] = licenses[i].of(o)
	}
	slices.SortFunc(licenses, func(a, b License) int { return strings.Compare(a.LicenseID, b.LicenseID) })
	return demo.Write(w, http.StatusOK, licenses)
}

// of returns the license with what is told of its organization.
func (l License) of(o organization.Organization) License {
	l.OrganizationName, l.ContactName = o.Name, o.ContactName
	l.ContactPhone, l.ContactEmail = o.ContactPhone, o.ContactEmail
	return l
}

func (a *api) put(w http.ResponseWriter, req *http.Request) error {
	l, err := read(w, req)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if a.rows.Put(key{l.OrganizationID, l.LicenseID}, l) {
		status = http.StatusOK
	}
	return demo.Write(w, status, l)
}

func (a *api) post(w http.ResponseWriter, req *http.Request) error {
	l, err := read(w, req)
	if err != nil {
		return err
	}
	if !a.rows.Insert(key{l.OrganizationID, l.LicenseID}, l) {
		return demo.Fail(http.StatusConflict, "license_exists", "there is a license of this ID; PUT replaces it")
	}
	w.Header().Set("Location",
		"/v1/organizations/"+url.PathEscape(l.OrganizationID)+"/licenses/"+url.PathEscape(l.LicenseID))
	return demo.Write(w, http.StatusCreated, l)
}

func (a *api) delete(w http.ResponseWriter, req *http.Request) error {
	k, err := pathKey(req)
	if err != nil {
		return err
	}
	if !a.rows.Delete(k) {
		return notFound()
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func notFound() error {
	return demo.Fail(http.StatusNotFound, "license_not_found", "the organization has no license of this ID")
}

// Package licensing is the demo's licensing service: the licenses of
// organizations. It asks the organization service through the gateway, so that
// the split of that service shows in its answers.
package licensing

import (
	"net/http"

	"specialroutes.example/services/internal/demo"
	"specialroutes.example/services/problem"
)

// License is a license of an organization. What it tells of the organization is
// filled in when it is read, and ignored when it is written.
type License struct {
	LicenseID        string `json:"licenseId"`
	OrganizationID   string `json:"organizationId"`
	OrganizationName string `json:"organizationName,omitempty"`
	ContactName      string `json:"contactName,omitempty"`
	ContactPhone     string `json:"contactPhone,omitempty"`
	ContactEmail     string `json:"contactEmail,omitempty"`
	ProductName      string `json:"productName"`
	LicenseType      string `json:"licenseType"`
	LicenseMax       int64  `json:"licenseMax"`
	LicenseAllocated int64  `json:"licenseAllocated"`
	Comment          string `json:"comment"`
}

// Seed returns the licenses that a service begins with.
func Seed() []License {
	const crm, hr = "e254f8c-c442-4ebe-a82a-e2fc1d1ff78a", "442adb6e-fa58-47f3-9ca2-ed1fecdfe86c"
	row := func(id, organization, kind, product string, most, allocated int64) License {
		return License{
			LicenseID: id, OrganizationID: organization, LicenseType: kind, ProductName: product,
			LicenseMax: most, LicenseAllocated: allocated,
		}
	}
	return []License{
		row("f3831f8c-c338-4ebe-a82a-e2fc1d1ff78a", crm, "user", "CustomerPro", 100, 5),
		row("t9876f8c-c338-4abc-zf6a-ttt1", crm, "user", "suitability-plus", 200, 189),
		row("38777179-7094-4200-9d61-edb101c6ea84", hr, "user", "HR-PowerSuite", 100, 4),
		row("08dbe05-606e-4dad-9d33-90ef10e334f9", hr, "core-prod", "WildCat Application Gateway", 16, 16),
	}
}

// read takes a license from a request. The organization is that of the path, and
// so is the license's ID where the path has one; else the document must say it.
func read(w http.ResponseWriter, req *http.Request) (License, error) {
	k, err := pathKey(req)
	if err != nil {
		return License{}, err
	}
	var l License
	if err := demo.Read(w, req, &l); err != nil {
		return License{}, err
	}
	if k.license == "" {
		k.license = l.LicenseID
	}
	if mistakes := l.mistakes(k); len(mistakes) > 0 {
		return License{}, demo.Invalid(mistakes...)
	}
	l.LicenseID, l.OrganizationID = k.license, k.organization
	l.OrganizationName, l.ContactName, l.ContactPhone, l.ContactEmail = "", "", "", ""
	return l, nil
}

// mistakes lists what is wrong with a license to be stored under k.
func (l License) mistakes(k key) []problem.FieldError {
	mistakes := demo.SameID("/licenseId", l.LicenseID, k.license)
	mistakes = append(mistakes, demo.Required("/licenseId", k.license)...)
	if len(k.license) > demo.MaxID {
		mistakes = append(mistakes, problem.FieldError{Pointer: "/licenseId", Detail: "is too long"})
	}
	mistakes = append(mistakes, demo.SameID("/organizationId", l.OrganizationID, k.organization)...)
	mistakes = append(mistakes, demo.Required("/productName", l.ProductName)...)
	mistakes = append(mistakes, demo.Required("/licenseType", l.LicenseType)...)
	if l.LicenseMax < 0 {
		mistakes = append(mistakes, problem.FieldError{Pointer: "/licenseMax", Detail: "is negative"})
	}
	if l.LicenseAllocated < 0 || l.LicenseAllocated > l.LicenseMax {
		mistakes = append(mistakes, problem.FieldError{Pointer: "/licenseAllocated", Detail: "is not between 0 and licenseMax"})
	}
	return mistakes
}

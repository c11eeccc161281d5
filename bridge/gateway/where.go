package gateway

import (
	"strings"
)

// BrowserOf is the everyday name of the browser that sends a User-Agent; "" if unknown.
func BrowserOf(userAgent string) string {
	for _, of := range [...][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"},
		{"HeadlessChrome/", "headless Chrome"},
		{"Chrome/", "Chrome"}, {"Firefox/", "Firefox"}, {"Safari/", "Safari"}} {
		if strings.Contains(userAgent, of[0]) {
			return of[1]
		}
	}
	return ""
}

// NameProfile names the profile of a browser until release is called. source is PageInfo.Source of
// its pages. Of several names the last one counts.
func (g *Gateway) NameProfile(source, name string) (release func()) {
	set := func(named bool) {
		defer g.lock()()
		g.catalog.NameProfile(source, &name, named)
		g.renamed()
	}
	set(true)
	return func() { set(false) }
}

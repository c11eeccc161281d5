package calls

import (
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/live"
	"github.com/pagewire/pagewire/bridge/internal/quota"
	"github.com/pagewire/pagewire/bridge/weborigin"
)

// A Resource is a listed resource or, if its URI has a {, a template.
type Resource struct {
	URI         string `json:"uri"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
	Tab         int    `json:"-"`
}

// maxListed bounds the resources and templates in an answer. Each site has a share: a page with
// 1,001 resources had all places, and the model saw nothing of the others.
const maxListed = 200

// maxListBytes bounds the resources of an answer, and maxListDescription the description of each:
// programs show 8,000 to 50,000 characters of a result. The descriptions of one page once made
// 12 MB.
const maxListBytes, maxListDescription = 40_000, 300

// shares leaves out of a list what takes more than the share of its site.
func shares(list []Resource) []Resource {
	origin := func(r Resource) string { return weborigin.Of(r.URI) }
	few := slices.Clone(quota.Shares(list, maxListed, origin))
	for i := range few {
		if d := &few[i].Description; len(*d) > maxListDescription {
			*d = strings.ToValidUTF8((*d)[:maxListDescription], "") + "…"
		}
	}
	return quota.Within(few, maxListBytes, origin,
		func(r Resource) int { return len(live.Line(r)) + len(",") })
}

// list answers a call of list_page_resources.
func (t *Tools) list(c Call, args []byte) answer {
	contains, tab := "", int64(0)
	if err := decode(List, args, map[string]any{"contains": &contains, "tab": &tab}); err != nil {
		return failure(err.Error())
	}
	out := struct {
		Resources []Resource `json:"resources"`
		Templates []Resource `json:"templates,omitempty"`
		Note      string     `json:"note,omitempty"`
	}{Resources: []Resource{}}
	fitting := t.fitting(c, strings.ToLower(contains), tab)
	shown := shares(fitting)
	if len(shown) < len(fitting) {
		out.Note = "There are more: narrow the list with contains or tab."
	}
	for _, r := range shown {
		if strings.Contains(r.URI, "{") {
			out.Templates = append(out.Templates, r)
		} else {
			out.Resources = append(out.Resources, r)
		}
	}
	switch {
	case len(out.Resources)+len(out.Templates) > 0:
	case t.Unseen():
		out.Note = "A browser has not said yet which pages are open: list again in a moment."
	case contains != "" || tab != 0:
		out.Note = "No open page offers a resource that fits."
	default:
		out.Note = "No open page offers a resource: the user can open one in a browser that " +
			"Pagewire sees. pagewire doctor says what is missing."
	}
	for _, notice := range t.Notices(c) {
		out.Note = strings.TrimSpace(out.Note + " " + notice)
	}
	return answer{content: []any{live.AsJSON(out)}}
}

// fitting are the listed resources that a call's agent sees and that fit the arguments. contains is
// in lower case, and a tab of 0 is any.
func (t *Tools) fitting(c Call, contains string, tab int64) (list []Resource) {
	for r := range t.Listed {
		if c.Sees(r.URI) && (tab == 0 || int64(r.Tab) == tab) &&
			strings.Contains(strings.ToLower(r.URI+"\n"+r.Title+"\n"+r.Description), contains) {
			list = append(list, r)
		}
	}
	return list
}

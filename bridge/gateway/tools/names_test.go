//go:build !js

package tools

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

var own = []string{"list_page_resources", "read_page_resource", "wait_for_page_update"}

func TestNamesOfAnOriginHaveABound(t *testing.T) {
	b := NewNames(own...)
	for n := range maxNames {
		if b.Of("https://app.example", strconv.Itoa(n)) == "" {
			t.Fatalf("tool %d has no name", n)
		}
	}
	if name := b.Of("https://app.example", "one more"); name != "" {
		t.Errorf("a tool beyond the bound is called %q", name)
	}
	if b.Of("https://app.example", "0") != "0" || b.Of("https://other.example", "tool") != "tool" {
		t.Error("names that there are, or those of another origin, suffer")
	}
}

func TestNamesThatLookLikeOurs(t *testing.T) {
	n := NewNames(own...)
	for _, name := range []string{
		"list_page_resources", "List_Page_Resources", "LIST-PAGE-RESOURCES", "listPageResources", "list.page.resources",
		"list page resources", "list__page__resources",
		"list_page_resource", "list_pages_resources", "1ist_page_res0urces", "l!st_p@ge_re$ources",
		"list_page_resоurces", "ｌist_page_resources", "list_page_re\u200bsources", "list_page_rеsоurces",
		"pagewire_list_page_resources", "my_list_page_resources", "list_page_resources_v2", "list_page_resources2",
		"mcp__pagewire__read_page_resource",
		"read_page_resource", "ReadPageResource", "read_page_resource_now", "wait_for_page_update",
		"waitForPageUpdates", "wait-for-page-update",
		"pagewire", "Pagewire_admin", "page-wire-read", "PAGEWIRE", strings.Repeat("x", 200) + "read_page_resource",
	} {
		if !n.LookLikeOurs(name) {
			t.Errorf("%q may be a page's", name)
		}
	}
	for _, name := range []string{
		"add", "search", "list", "read", "list_orders", "read_page", "list_resources", "resources_list",
		"resources_read", "resources_wait", "get_page_resources", "update_page", "wait_for_update",
		"page_update", "read_resource", "wire_page", "show_page", "搜索", "поиск", "", "pay", "list_page",
		"open_page_resource",
	} {
		if n.LookLikeOurs(name) {
			t.Errorf("%q may not be a page's", name)
		}
	}
}

// Nor does the gateway make such a name: where two pages have a tool of one name, the second's host is put behind it.
func TestNamesAfterRenaming(t *testing.T) {
	b := NewNames(own...)
	first := b.Of("https://a.example", "list")
	second := b.Of("https://page-resources.example", "list")
	third := b.Of("https://page-resources.other", "list")
	names := []string{first, second, third}
	if first != "list" || slices.ContainsFunc(names, b.LookLikeOurs) || second == third {
		t.Errorf("the names are %q", names)
	}
}

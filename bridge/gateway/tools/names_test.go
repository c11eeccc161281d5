package tools

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

var own = []string{"list_page_resources", "read_page_resource", "wait_for_page_update"}

// Names without a page have a bound, no matter how many an origin has had. Only names of that origin are forgotten, and
// only if no page has them.
func TestNamesOfAnOriginHaveABound(t *testing.T) {
	b := NewNames(own...)
	b.Of("https://bank.example", "pay") // then its page is closed
	b.Sweep()
	for n := range 4 * maxIdle {
		for _, lasting := range []string{"search", "add"} {
			b.Of("https://app.example", lasting)
		}
		if b.Of("https://app.example", "item"+strconv.Itoa(n)) == "" {
			t.Fatalf("tool %d has no name", n)
		}
		b.Sweep()
	}
	if n := len(b.given); n > maxIdle+10 || n != len(b.owners)-len(own) {
		t.Errorf("%d names of %d tools are kept", len(b.owners), n)
	}
	for name, want := range map[string]string{"search": "search_other_example", "pay": "pay_other_example",
		"item0": "item0", "item" + strconv.Itoa(4*maxIdle-1): "item39999_other_example"} {
		if got := b.Of("https://other.example", name); got != want {
			t.Errorf("another origin's %s is called %s, want %s", name, got, want)
		}
	}
	if got := b.Of("https://bank.example", "pay"); got != "pay" {
		t.Errorf("the bank's tool is called %s", got)
	}
}

// Tools whose names begin alike, or whose host is long, get different names for agents. Each takes only a few tries.
func TestNamesThatBeginAlike(t *testing.T) {
	b := NewNames(own...)
	tried := 0
	names := map[string]bool{}
	for _, origin := range []string{"https://" + strings.Repeat("a", 60) + ".example",
		"https://" + strings.Repeat("a", 60) + ".test"} {
		for n := range 1000 {
			name := b.Of(origin, strings.Repeat("x", 70)+strconv.Itoa(n))
			if len(name) > 64 || names[name] {
				t.Fatalf("%d. tool is called %q", n, name)
			}
			names[name] = true
			tried++
		}
	}
	if len(names) != tried {
		t.Errorf("%d names for %d tools", len(names), tried)
	}
}

// A page's tool gets no name that looks like the name of a tool in a tab.
func TestNamesThatLookLikeATabs(t *testing.T) {
	b := NewNames(own...)
	for tool, want := range map[string]string{"pay_tab2": "pay_tab2_shop_example", "pay_tab": "pay_tab_shop_example",
		"pay_tab2x": "pay_tab2x", "pay_table": "pay_table"} {
		if got := b.Of("https://shop.example", tool); got != want {
			t.Errorf("%s is called %s, want %s", tool, got, want)
		}
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
	for title, want := range map[string]bool{
		"Read a page resource": true, "read_page_resource (Pagewire)": true, "Rеad pagе rеsourcеs, list": true,
		"ｌｉｓｔ ｐａｇｅ ｒｅｓｏｕｒｃｅｓ": true, "𝗹𝗶𝘀𝘁 𝗽𝗮𝗴𝗲 𝗿𝗲𝘀𝗼𝘂𝗿𝗰𝗲𝘀": true, "ḷíșț ṗáġé ŕéșóúŕćéș": true, "Lіѕt раgе rеѕоurсеѕ": true,
		"Раgewire": true, "Страница каталога": false, "搜索搜索搜索搜索": false,
		"List page resources": true, "Read page resources 查看购物车中的所有商品以及它们的价格和库存数量": true,
		"查看 page 购物车中的所有商品以及它们的 list": false, "查看购物车中的所有商品以及它们的价格和库存数量": false, "Показать все товары в корзине покупателя": false,
	} {
		if got := n.TitleLooksLikeOurs(title); got != want {
			t.Errorf("the title %q looks like ours: %v, want %v", title, got, want)
		}
	}
	for _, name := range []string{
		"add", "search", "list", "read", "list_orders", "read_page", "list_resources", "resources_list",
		"resources_read", "resources_wait", "get_page_resources", "update_page", "wait_for_update",
		"장바구니에상품담기", "Wait for 페이지 업데이트", "Page 设置向导", "page_한글", "Réserver une page",
		"page_update", "read_resource", "wire_page", "show_page", "搜索", "поиск", "", "pay", "list_page",
		"open_page_resource",
	} {
		if n.LookLikeOurs(name) {
			t.Errorf("%q may not be a page's", name)
		}
	}
}

// The gateway makes no such name either, when it adds the host of the second of two pages to a name.
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

// Only names that Of can give are recalled. A tool that had a name gets it again, no matter which page comes first.
func TestRecallOfNames(t *testing.T) {
	const first, second = "https://first.example", "https://second.example"
	n := NewNames("read_page_resource")
	version := n.Version()
	for _, name := range []string{"pay", "read_page_resource", "Read-Page-Resources", "search_tab1", "", "search x"} {
		n.Recall(first, "search", name)
		n.Recall(first, name+"!", name)
	}
	if len(n.given) != 0 || n.Version() != version {
		t.Fatalf("recalled: %v", n.given)
	}
	n.Recall(first, "search", "search")
	n.Recall(second, "search", "search") // the name is taken
	n.Recall(second, "search", "search_second_example")
	if got := []string{n.Of(second, "search"), n.Of(first, "search")}; got[0] != "search_second_example" ||
		got[1] != "search" || n.Version() == version {
		t.Errorf("the tools are called %q", got)
	}
	given := map[string]string{}
	n.Given(func(origin, tool, name string) { given[name] = origin + " " + tool })
	if len(given) != 2 || given["search"] != first+" search" {
		t.Errorf("given: %v", given)
	}
}

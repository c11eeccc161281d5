package main

import (
	"fmt"
	"strings"
)

// engineNames are those of make test-engines, in the order of the table's columns.
var engineNames = []string{"chromium", "firefox", "webkit"}

// A row of the table: what is tested, and by which tests of package e2e.
type row struct {
	what  string
	tests string
	// own are tests of one engine, by its name, beside those of all.
	own map[string]string
}

// rows are the tests that are not about one browser alone, and what has a test of its own in each.
var rows = []row{
	{"the story: register, list, read, be told", "TestStory TestNotifyLoop " +
		"TestTheFirstSignOfAnAgentFetchesBothFiles", nil},
	{"the core's first turn, by tasks of a priority, which WebKit has not", "", map[string]string{
		"chromium": "TestWhatWaitsForTheCoreIsAnsweredInItsFirstTurn",
		"firefox":  "TestWhatWaitsForTheCoreIsAnsweredInItsFirstTurn"}},
	{"bad reads, uninstall", "TestBadReads TestUninstall", nil},
	{"clients of @mcp-b, by window.postMessage", "TestTabClient TestTabClientBeforeThePage TestEnvelopeReadiness " +
		"TestEnvelopeIsStrict TestEnvelopeClientsTogether TestNothingIsPostedUnasked", nil},
	{"hostile pages", "TestHostilePages TestHostileTools", nil},
	{"tools", "TestProjectedTools TestWaitTool TestHint TestPageTools TestToolMethods TestToolListPages " +
		"TestOwnModelContext TestHintsOfPages TestToolsThatCannotBeServed", nil},
	{"Firefox's own model context, of an older draft", "TestOlderContext TestOlderContextWithoutGetTools",
		map[string]string{"firefox": "TestFirefoxModelContext"}},
	{"beside other libraries, under each Content Security Policy", "TestMatrix TestPolyfillIsExtended " +
		"TestOriginAgentCluster TestInsecureContext TestIntegrity", nil},
	{"a core that dies", "TestCoreDeath", nil},
	{"frames and windows", "TestWindows TestPageLeft", nil},
	{"back/forward cache", "TestBackForwardCache", nil},
	{"a hidden tab, whose timers are throttled", "TestHiddenTab", nil},
	{"a gateway over a WebSocket, with reload", "TestPageThatIsLoadedAnew TestGatewaysThatComeInOneTurn", nil},
	{"a service's nodes, with its tickets", "TestPageOfAFleet", map[string]string{
		"chromium": "TestPageWithoutATicket", "firefox": "TestPageWithoutATicket"}}, // which reads the console
	{"the npm package, in an app of Vite and React", "TestNpm", nil},
	{"resources by attributes: pagewire.elements.js", "TestElements TestElementsForm TestElementsTableAndText " +
		"TestElementsComeAndGo TestElementsBesideOthers", nil},
	{"forms as tools: pagewire.elements.js", "TestElementsTools TestElementsToolsComeAndGo", nil},
	{"Web IDL, and tests for the web platform's own", "TestWebPlatform", nil},
	{"the extension: allow, list, read, be told, revoke", "", map[string]string{
		"chromium": "TestExtension TestExtensionAsksItsUser", "firefox": "TestFirefoxExtension"}},
	{"what these tests rely on, of the engine's driver", "TestTabTellsWhatItsPageWrites", nil},
}

// An exclusion says which tests of package e2e are not run in every engine, and why.
type exclusion struct{ tests, why string }

var leftOut = []exclusion{
	{"TestPageWithTwoTransports TestThreeAgents TestWhatEndsAnAgentEndsItsBrowserToo TestAttacks TestPeers TestDemos " +
		"TestSoak TestHintsOfBarePages TestNamedBrowsers TestBrowserThatHasWebMCPAlready",
		"the gateway, or a peer, drives the browser by the Chrome DevTools Protocol"},
	{"TestExtensionAnotherExtension TestExtensionRemembers TestExtensionWorkerStopped TestExtensionOnAPublicPage " +
		"TestExtensionLook TestExtensionWorker TestExtensionOnlyInAllowedSites TestExtensionNamesItsProfile " +
		"TestExtensionTellsTheTabInFront",
		"they look into Chromium's service worker, or its processes; Firefox's build has the same scripts"},
	{"TestForeignPort TestEndsWithItsProgram " +
		"TestTypeScriptClient TestInspector TestConformance TestConformanceOfAFleet TestEventsOfTheAISDK " +
		"TestTypeScriptClientAtAFleet TestPagesOfADesktopAtANode TestClientsOfADaemonThatIsKilled " +
		"TestWhatOthersDoNot TestClientThatFindsItsLogin",
		"they are about agents and gateways: what a page's engine is makes no difference"},
	{"TestEcosystemPages TestEcosystemServers TestEcosystemDeploy TestEcosystemExports TestEcosystemTesting " +
		"TestEcosystemVitePlugin", "they are about bundlers, servers and deployments: make test-ecosystem runs them"},
	{"TestViewsSubscribe TestViewsNavigate TestViewsOutliveTheConnection TestViewsWithoutTheWasm " +
		"TestViewsOfAPlainHost TestViewsDemo", "hosts of MCP Apps' Views: not carried over yet"},
}

// runs are the tests of an engine, in the words of go test -run.
func runs(engine string) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.of(engine)...)
	}
	return fmt.Sprintf("^(%s)$", strings.Join(names, "|"))
}

// of are the tests of a row that an engine has.
func (r row) of(engine string) []string {
	return append(strings.Fields(r.tests), strings.Fields(r.own[engine])...)
}

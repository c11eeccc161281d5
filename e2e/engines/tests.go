package main

import (
	"fmt"
	"strings"
)

// engineNames are the engines of make test-engines, in the order of the table's columns.
var engineNames = []string{"chromium", "firefox", "webkit"}

// A row of the table: a subject, and its tests in package e2e.
type row struct {
	what  string
	tests string
	// own are further tests of one engine, by its name.
	own map[string]string
}

// rows are the tests that are not about one browser only, and the subjects with tests of their own
// for each engine.
var rows = []row{
	{"the story: register, list, read, be told", "TestStory TestNotifyLoop " +
		"TestTheFirstSignOfAnAgentFetchesBothFiles", nil},
	{"the core's first turn, by tasks of a priority, which WebKit has not", "", map[string]string{
		"chromium": "TestWhatWaitsForTheCoreIsAnsweredInItsFirstTurn",
		"firefox":  "TestWhatWaitsForTheCoreIsAnsweredInItsFirstTurn"}},
	{"bad reads, uninstall", "TestBadReads TestUninstall", nil},
	{"clients of @mcp-b, by window.postMessage",
		"TestTabClient TestTabClientBeforeThePage TestEnvelopeReadiness " +
			"TestEnvelopeIsStrict TestEnvelopeClientsTogether TestNothingIsPostedUnasked", nil},
	{"hostile pages", "TestHostilePages TestHostileTools", nil},
	{"tools",
		"TestProjectedTools TestToolDiscovery TestToolDiscoveryIsStrict TestSchemaOfAClass TestWaitTool TestHint TestPageTools TestToolMethods TestToolListPages " +
			"TestOwnModelContext TestHintsOfPages TestToolsThatCannotBeServed", nil},
	{"Firefox's own model context, of an older draft",
		"TestOlderContext TestOlderContextWithoutGetTools",
		map[string]string{"firefox": "TestFirefoxModelContext"}},
	{"beside other libraries, under each Content Security Policy",
		"TestMatrix TestPolyfillIsExtended " +
			"TestOriginAgentCluster TestInsecureContext TestIntegrity", nil},
	{"a core that dies", "TestCoreDeath", nil},
	{"calls that an agent in the page withdraws", "",
		map[string]string{"chromium": "TestCallsWithdrawnInThePage"}},
	{"frames and windows", "TestWindows TestPageLeft", nil},
	{"back/forward cache", "TestBackForwardCache", nil},
	{"a hidden tab, whose timers are throttled", "TestHiddenTab", nil},
	{"a gateway over a WebSocket, with reload",
		"TestPageThatIsLoadedAnew TestGatewaysThatComeInOneTurn", nil},
	{"a service's nodes, with its tickets", "TestPageOfAFleet", map[string]string{
		// the test reads the console
		"chromium": "TestPageWithoutATicket", "firefox": "TestPageWithoutATicket"}},
	{"the npm package, in an app of Vite and React", "TestNpm", nil},
	{"resources by attributes: pagewire.elements.js",
		"TestElements TestElementsForm TestElementsTableAndText " +
			"TestElementsComeAndGo TestElementsBesideOthers TestElementsPrivateParts TestElementsWithNames", nil},
	{"forms as tools: pagewire.elements.js", "TestElementsTools TestElementsToolsSubmitWhatIsAsked TestElementsToolsComeAndGo", nil},
	{"Web IDL, and tests for the web platform's own", "TestWebPlatform", nil},
	{"the extension: allow, list, read, be told, revoke", "", map[string]string{
		"chromium": "TestExtension TestExtensionAsksItsUser", "firefox": "TestFirefoxExtension"}},
	{"what these tests rely on, of the engine's driver", "TestTabTellsWhatItsPageWrites", nil},
}

// An exclusion names tests of package e2e that do not run in every engine, with the reason.
type exclusion struct{ tests, why string }

var leftOut = []exclusion{
	{"TestForeignPage TestPageWithTwoTransports TestThreeAgents TestWhatEndsAnAgentEndsItsBrowserToo TestAttacks TestPeers TestHosts TestRemote TestBesideASecondServer TestDemos " +
		"TestSoak TestHintsOfBarePages TestNamedBrowsers TestBrowserThatHasWebMCPAlready TestCallsOfPagesThatStandStill " +
		"TestWaysOfADocument TestAgentThatLooksInABrowser TestParametersReachThePage TestShownLines TestShownFrames TestShownFrameOfOneDomain TestShownClosedTrees TestShownClosedHosts TestShownHiddenText " +
		"TestShownHidesAtOnce TestShownForms TestShownPasswordsReplaced TestShownLongHiddenTexts TestShownTooManyElements TestShownFailingLook TestShownComesBack " +
		"TestShownSecrets TestShownAddresses TestShownPasswords TestShownFollows " +
		"TestShownRestless TestShownQuietTexts TestShownHiddenTab " +
		"TestShownWatches TestShownReaderAnswers TestShownBetweenReadAndWatch TestShownPace TestShownPart TestShownAnchors TestShownParts TestShownPicks TestShownPicksByCountedIDs TestShownFormsWithUnseenFields TestShownScrolledAway TestShownPaintedGrounds TestShownJoiners TestShownTextsInOddPlaces TestShownCodesBesideTheirField TestShownFollowsAnyAttribute TestShownGrowingTexts TestPickedWhileAnAgentRuns TestShownHostilePages TestShownDocumentOpen " +
		"TestShownLargePages TestShownKeeps TestShownStorms TestShownPiecesAreTrue TestShownPagesOfOthers",
		"the gateway, or a peer, drives the browser by the Chrome DevTools Protocol"},
	{"TestExtensionAnotherExtension TestExtensionRemembers TestExtensionWorkerStopped TestExtensionOnAPublicPage " +
		"TestExtensionLook TestExtensionWithoutPagewire TestExtensionWorker TestExtensionOnlyInAllowedSites TestExtensionNamesItsProfile " +
		"TestExtensionTellsTheTabInFront TestExtensionLinkEndsUnconfirmed TestExtensionShows TestExtensionSharesAPart " +
		"TestExtensionShowsATabOfCDP TestExtensionShowsWithoutItsWorker",
		"they look into Chromium's service worker, or its processes; Firefox's build has the same scripts"},
	{"TestPicker TestPickerAccessible TestPickerComponents",
		"a person's clicks and keys come by the Chrome DevTools Protocol"},
	{"TestGuardedToolsOfAgents TestForeignPort TestEndsWithItsProgram " +
		"TestTypeScriptClient TestInspector TestConformance TestConformanceOfAFleet TestEventsOfTheAISDK " +
		"TestTypeScriptClientAtAFleet TestPagesOfADesktopAtANode TestClientsOfADaemonThatIsKilled " +
		"TestWhatOthersDoNot TestToolsListsOfTheReadme TestClientThatFindsItsLogin TestClientsTakeAnswers TestOfficialClientsTakeEachList " +
		"TestClientsTakeWhatIsGenerated TestClientsBesideTheWorstPages",
		"they are about agents and gateways: what a page's engine is makes no difference"},
	{"TestEcosystemPages TestEcosystemServers TestEcosystemDeploy TestEcosystemExports TestEcosystemTesting " +
		"TestEcosystemVitePlugin TestEcosystemDev",
		"they are about bundlers, servers and deployments: make test-ecosystem runs them"},
	{"TestFrameworks", "it is about servers of other makers, in development: make test-frameworks runs it"},
	{"TestViewsSubscribe TestViewsNavigate TestViewsOutliveTheConnection TestViewsRemovedAtAnyMoment " +
		"TestViewsOfAPlainHost TestViewsThatAreGone TestViewsDemo",
		"hosts of MCP Apps' Views: not carried over yet"},
}

// runs returns the tests of an engine, as a pattern for go test -run.
func runs(engine string) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.of(engine)...)
	}
	return fmt.Sprintf("^(%s)$", strings.Join(names, "|"))
}

// of returns the tests of a row in an engine.
func (r row) of(engine string) []string {
	return append(strings.Fields(r.tests), strings.Fields(r.own[engine])...)
}

# Every task of this repository is a target here; `make` lists them.
# Needs Go, Node 20 or newer with npm, and for the browser tests a Chromium or Chrome.

SHELL         := /bin/bash
.SHELLFLAGS   := -o pipefail -c
MAKEFLAGS     += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help build demo pictures test test-native test-wasm test-js test-browser test-page test-agents test-hosts \
	test-attacks test-gate test-models test-pages soak fuzz vulncheck test-busy test-docs test-ecosystem test-engines test-frameworks test-remote test-rounds test-races test-fresh \
	test-readme test-release unpack release size bench bench-agents bench-fleet bench-pages bench-stale trace site imports generate check lint fmt clean \
	browser compiler engines node tinygo tinygo-unless-go

# npm writes this file last, so it is older than the lock file exactly when packages must be installed.
NPM := js/node_modules/.package-lock.json
# MCP servers of others, for the browser level alone.
PEERS := e2e/peers/node_modules/.package-lock.json
# The packages that the benchmark compares Pagewire with.
RIVALS := e2e/bench/node_modules/.package-lock.json
# For the tests of Views: the MCP Apps SDK, and the official server.
VIEWS := e2e/views/node_modules/.package-lock.json
# Pages that others wrote, in packages of npm, and in 22 MB of packages of Debian.
PAGES := e2e/pages/node_modules/.package-lock.json
DOCUMENTS := debian-faq debian-policy git-doc nodejs-doc sqlite3-doc python-flask-doc xapian-doc bash-doc exim4-doc-html maint-guide
# The protocol's conformance suites, MCP Inspector and the Node 22 that both need; and the web platform's test harness.
SUITES := e2e/conformance/node_modules/.package-lock.json
# The makers of the manual's site and of README's picture.
DOCS := demo/docs/node_modules/.package-lock.json
# The bundlers, server runtimes and test environments that try the npm package, 660 MB.
ECOSYSTEM := e2e/ecosystem/node_modules/.package-lock.json
# Programs of others that call a page's tools, beside PEERS, and the Node 22 that two of them need.
HOSTS := e2e/hosts/node_modules/.package-lock.json
# The makers of the apps that try pagewire/dev: the apps themselves install what their templates ask for.
FRAMEWORKS := e2e/frameworks/node_modules/.package-lock.json
# Agent programs: AGENT runs with .ci/run, the others with make test-agents alone, 1.6 GB.
AGENT  := e2e/agents/gemini/node_modules/.package-lock.json
PROGRAMS := e2e/agents/programs/node_modules/.package-lock.json
AGENT_PROGRAMS := $(AGENT) $(if $(SHORT),,$(PROGRAMS) e2e/agents/libraries/node_modules/.package-lock.json)

# The same names as in bridge/desktop/browser.
BROWSERS := chromium chromium-browser google-chrome{,-stable,-beta,-unstable} chrome microsoft-edge{,-stable} msedge \
	brave-browser brave

# The packages of each level. Packages whose tests drive a browser have a level of their own, and so have packages that
# test files of the build. Packages that compile for js/wasm are tested there as well as natively.
LEVELS         := native wasm js browser
BESIDE          = $(filter-out $(lastword $(LEVELS)),$(LEVELS))
# The tests of the browser level with a core in the page: .ci/run runs them with the core that Go compiles, too.
IN_PAGE := ^Test(Story|Matrix|NotifyLoop|CoreDeath|TabClient|Envelope|HiddenTab|BackForward|$\
	Bad|Uninstall|TheFirstSign|WhatWaits|Windows|PageLeft|Views)
DRIVES_BROWSER := /(e2e|bridge/(desktop/(browser(/.*)?|inspect/inspectortest)|pages/(cdp|socket)|testkit/browsertest))$$
NEEDS_BUILD    := /js/build(/release)?$$
# These have targets of their own, test-docs and test-agents: 3 minutes of two processors.
ALONE          := /e2e/(agents|docs)$$
# TestPageSourcesStayFitForThePage keeps goroutines out of these: -race would find nothing, in several times the time.
SEQUENTIAL_PACKAGES := ./bridge ./bridge/wire ./bridge/coalesce ./bridge/resource
# TestUncheckedPackagesStartNoGoroutine keeps goroutines out of these, too: 27 s of -race are 3 s without.
UNCHECKED      := ./bridge/gateway/gate ./bridge/gateway/live/delta
SEQUENTIAL     := /bridge(/(wire|coalesce|resource|gateway/gate|gateway/live/delta))?$$
# A level ends with its last package, so those that take longest begin first: go test keeps the order.
LONG           := ./e2e $(addprefix ./bridge/,node/process gateway desktop/serve pages/extension \
	desktop/daemon node agents cmd/pagewire node/bus)
NATIVE_PACKAGES  = $$(go list $(LONG) ./... | grep -vE '$(DRIVES_BROWSER)|$(NEEDS_BUILD)|$(ALONE)|$(SEQUENTIAL)')
BROWSER_PACKAGES = $$(go list $(LONG) ./... | grep -E '$(DRIVES_BROWSER)')
PAGE_PACKAGES   := $(SEQUENTIAL_PACKAGES) ./bridge/link
WASM_PACKAGES   := $(PAGE_PACKAGES) ./wasm/...
# The core's packages are tested once more with an int of 32 bits, which TinyGo has: natively, which needs amd64.
INT32           := $(filter linux/amd64,$(shell go env GOHOSTOS)/$(shell go env GOHOSTARCH))
ASSETS_PACKAGES := ./bridge/assets ./bridge/cmd/pagewire
OF_ASSETS       := ^Test(Assets|FilesAreAll|InspectorIsThere|Doctor)
CONCURRENT_PACKAGES := ./bridge/gateway ./bridge/desktop/daemon ./bridge/agents ./bridge/desktop/inspect \
	./bridge/pages/extension ./bridge/cmd/pagewire

# A level needs a build first, unless make test has made it.
BUILD = $(if $(BUILT),,build)

GOFMT     = $$(go env GOROOT)/bin/gofmt
GO_FILES  = $$(find . -name '*.go' -not -path './js/node_modules/*')

# Each level writes its results here, and .ci/tally counts them.
RESULTS   := bin/test
# The Go of releases is the newest, since make vulncheck found 14 holes in 1.26.8, all in the standard library.
release test-release vulncheck: export GOTOOLCHAIN := go1.26.11
# 2.17.0 and 2.18.2 need go.digitalxero.dev/go-msix v0.3.1, which the proxy for Go modules refuses to serve.
GORELEASER := go run github.com/goreleaser/goreleaser/v2@v2.16.0
GOTESTSUM := go tool gotestsum --format pkgname --format-hide-empty-pkg --hide-summary=skipped

help: ## List the targets, and say which to use when
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ To see it, and to know that it works (both install what they need):
demo: build $(if $(ONCE)$(FLEET),,site) ## Serve the demo and the manual, and tell the story headless; ONCE=1 ends after the story, FLEET=1: of three nodes
	@$(MAKE) browser $(if $(ONCE),,|| true)
	@go run ./demo$(if $(FLEET),/fleet) $(if $(ONCE),-once)

test: build $(VIEWS) ## Run every test; say how many ran at each level, and what had compiled the core
	@# Each level waits part of its time, so all run at once. The last takes longest and is shown as it goes; the others
	@# are shown afterwards. Packages that two levels need are installed before.
	@rm -rf $(RESULTS) && mkdir -p $(RESULTS) && cp dist/core $(RESULTS)/core
	@level() { \
		local began=$$SECONDS; $(MAKE) test-$$1 BUILT=1; \
		echo $$? > $(RESULTS)/$$1.status; echo $$((SECONDS - began)) > $(RESULTS)/$$1.seconds; \
	}; \
	for level in $(BESIDE); do level $$level > $(RESULTS)/$$level.out 2>&1 & done; \
	level $(lastword $(LEVELS)); wait; cat /dev/null $(BESIDE:%=$(RESULTS)/%.out); .ci/tally $(RESULTS) $(LEVELS)

##@ While you work on it:
build: $(NPM) ## Build dist/ and bin/pagewire (the core by TinyGo where it is, else by Go; CORE=go or CORE=tinygo says which)
	@go run ./js/build -core=$(CORE)

tinygo: ## Install TinyGo, which compiles the core that ships, below the user's cache directory: 750 MB, once
	@go run ./js/build -install-tinygo

tinygo-unless-go:
	@$(if $(filter go,$(CORE)),,$(MAKE) tinygo)

check: ## Go alone, in seconds: format, vet and staticcheck, natively and for js/wasm, and the engine's tests
	@unformatted=$$($(GOFMT) -l $(GO_FILES)); \
		test -z "$$unformatted" || { echo "gofmt would change (make fmt does): $$unformatted" >&2; exit 1; }
	@go vet ./...
	@# Releases are for these systems too, and tests do not run there.
	@for system in darwin windows; do CGO_ENABLED=0 GOOS=$$system go vet ./bridge/... || exit 1; done
	@# Of the build tags, each of these has tests that make test does not compile.
	@go vet -tags 'attacks ecosystem engines frameworks fresh hosts look release remote soak' ./e2e/...
	@GOOS=js GOARCH=wasm go vet $(WASM_PACKAGES)
	@# Built first: go tool would build it for js/wasm too. All checks are on, except for unused code (U1000) in wasm/:
	@# staticcheck does not count //go:wasmexport as a use.
	@go build -o bin/ honnef.co/go/tools/cmd/staticcheck
	@bin/staticcheck -checks all ./...
	@GOOS=js GOARCH=wasm bin/staticcheck -checks all $(PAGE_PACKAGES)
	@GOOS=js GOARCH=wasm bin/staticcheck -checks all,-U1000 ./wasm/...
	@go test ./bridge ./bridge/wire ./bridge/coalesce ./bridge/resource

lint: $(NPM) ## Lint TypeScript, JavaScript, CSS and JSON, and check their format
	@cd js && node_modules/.bin/biome check --error-on-warnings ..

fmt: $(NPM) ## Format all sources
	@$(GOFMT) -w $(GO_FILES)
	@cd js && node_modules/.bin/biome format --write ..

test-native: compiler ## Native level: go vet, go test -race; needs neither npm nor a build. PKG=./bridge/... RUN=TestX narrow it
	@# It checks more than go test would, for all levels, and once: go test checks again what -race compiles.
	@go vet $(or $(PKG),./...)
	@# Tests of nodes and daemons wait, so more of them than processors run.
	$(call gotest,native,go test -json -race -vet=off -p 4 -parallel 4 -timeout 20m $(if $(RUN),-run '$(RUN)') $(or $(PKG),$(NATIVE_PACKAGES)))
	$(if $(PKG),,$(call gotest,native-sequential,go test -json -vet=off $(if $(RUN),-run '$(RUN)') $(SEQUENTIAL_PACKAGES) $(UNCHECKED)))

test-wasm: node ## Wasm level: go vet, and the engine and the edge under js/wasm in Node. PKG= and RUN= narrow it
	@GOOS=js GOARCH=wasm go vet $(or $(PKG),$(WASM_PACKAGES))
	@# Arguments and environment share 8 KB under js/wasm: pass only a PATH that finds node.
	$(call gotest,wasm,env GOOS=js GOARCH=wasm go test -json -vet=off $(if $(RUN),-run '$(RUN)') -exec="env -i \
		'PATH=$$(dirname $$(command -v node)):/usr/bin:/bin' '$$(go env GOROOT)/lib/wasm/go_js_wasm_exec'" \
		$(or $(PKG),$(WASM_PACKAGES)))
	$(if $(PKG),,$(if $(INT32),$(call gotest,wasm-int32,env GOARCH=386 go test -json -vet=off $(if $(RUN),-run '$(RUN)') \
		$(SEQUENTIAL_PACKAGES))))

test-js: $(BUILD) compiler $(VIEWS) $(RIVALS) ## JS level: tsc, node --test, and the build itself. RUN='a name' narrows it to one
	@for project in $$(find js demo e2e -name tsconfig.json -not -path '*/node_modules/*'); do \
		js/node_modules/.bin/tsc -p $$project || exit 1; done
	@mkdir -p $(RESULTS)
	@files=$$(find js/test idl -name '*.test.mjs'); test -n "$$files" || { echo "no *.test.mjs in js/test or idl" >&2; exit 1; }; \
		node --test $(if $(RUN),--test-name-pattern '$(RUN)') --test-reporter=spec --test-reporter-destination=stdout \
		--test-reporter=tap --test-reporter-destination=$(RESULTS)/js.tap $$files
	$(if $(RUN),,$(call gotest,js-build,go test -json -race -vet=off ./js/build/...))
	@# These tests are about the files of the build; the native level runs their packages without the files.
	$(if $(RUN),,$(call gotest,js-assets,go test -json -race -tags pagewire_assets -run '$(OF_ASSETS)' $(ASSETS_PACKAGES)))

test-browser: $(BUILD) browser $(PEERS) $(VIEWS) $(PAGES) $(SUITES) ## Browser level: headless Chromium. PKG=./e2e RUN=TestStory narrow it
	$(call gotest,browser,go test -json -vet=off -count=1 -timeout 60m -parallel 4 $(if $(RUN),-run '$(RUN)') \
		$(or $(PKG),$(BROWSER_PACKAGES)))

test-page: $(BUILD) browser $(VIEWS) # The tests of the browser level with a core in the page
	$(call gotest,page,go test -json -count=1 -timeout 30m -parallel 4 -run '$(or $(RUN),$(IN_PAGE))' ./e2e)

test-agents: $(BUILD) browser $(AGENT_PROGRAMS) ## Agent programs of others, each with a scripted model; writes e2e/agents/results.md. RUN=TestPrograms/codex: one. SHORT=1: Gemini CLI alone
	$(call gotest,agents,env AGENTS=$(if $(SHORT),,all) go test -json -count=1 -timeout 30m $(if $(RUN),-run '$(RUN)') ./e2e/agents)

test-hosts: $(BUILD) browser $(PEERS) $(HOSTS) ## Five programs of others, as npm has them, at a page of Pagewire: a table of what their models get. RUN=TestHosts/each/Stagehand: one
	@go vet -tags hosts ./e2e; rm -f bin/hosts.md
	$(call gotest,hosts,go test -json -count=1 -timeout 10m -parallel 2 -tags hosts -run '$(or $(RUN),TestHosts)' ./e2e); \
		code=$$?; cat bin/hosts.md; exit $$code

test-pages: $(BUILD) browser $(PEERS) $(PAGES) ## 32 pages of others: what agents read there is what a person sees; with the sizes of two peers' looks. make test reads 11 of them
	@.ci/documents bin/pages $(DOCUMENTS)
	$(call gotest,pages,env PAGES=all go test -json -count=1 -timeout 30m -run TestShownPagesOfOthers ./e2e)
	@grep -oE '[^ ]+\.html: .* bytes' $(RESULTS)/pages.json

test-docs: $(BUILD) site browser ## Every code block of the documents; how the manual and the demos look: both themes, three widths, axe-core. PICTURES=DIR keeps pictures
	@go vet -tags look ./e2e/docs
	$(call gotest,docs,go test -json -count=1 -timeout 30m -tags look $(if $(PICTURES),-run TestLook) ./e2e/docs \
		$(if $(PICTURES),-pictures $(PICTURES)))

test-ecosystem: $(BUILD) browser $(ECOSYSTEM) ## The npm package in bundlers, server runtimes and test environments of others, and the files that deploy nodes. RUN=TestEcosystemPages narrows it
	@go vet -tags ecosystem ./e2e
	$(call gotest,ecosystem,go test -json -count=1 -timeout 30m -tags ecosystem -run '$(or $(RUN),TestEcosystem)' ./e2e)

test-frameworks: $(BUILD) browser $(FRAMEWORKS) ## What an agent is told while apps of others' templates (create-vite, create-next-app) are developed, into bin/frameworks.md. RUN=TestFrameworks/vue: one
	@go vet -tags frameworks ./e2e
	$(call gotest,frameworks,go test -json -count=1 -timeout 30m -tags frameworks -run '$(or $(RUN),TestFrameworks)' ./e2e)
	@cat bin/frameworks.md

test-remote: $(BUILD) browser ## The ways of the manual's page about SSH: browser and agent in two network namespaces, OpenSSH between them; as root
	@.ci/debian openssh-server openssh-client iproute2
	@go vet -tags remote ./e2e
	$(call gotest,remote,go test -json -count=1 -timeout 10m -tags remote -run TestRemote ./e2e)

test-engines: $(BUILD) browser engines $(SUITES) ## The same tests in Chromium, Firefox and WebKitGTK; writes e2e/engines/. ENGINES=firefox RUN=TestStory: one
	@go vet -tags engines ./e2e/...
	@mkdir -p $(RESULTS); failed=; for engine in $(or $(ENGINES),chromium firefox webkit); do \
		ENGINE=$$engine $(GOTESTSUM) --jsonfile $(RESULTS)/engines-$$engine.json --raw-command -- go test -json -count=1 \
			-timeout 30m -parallel 3 -tags engines -run "$(or $(RUN),$$(go run ./e2e/engines -list $$engine))" \
			./e2e || failed=1; \
	done; $(if $(ENGINES)$(RUN),,go run ./e2e/engines $(RESULTS);) test -z "$$failed"

##@ What a night can prove:
test-busy: build ## Every test, ROUNDS times (5), while two loops keep two processors busy
	@.ci/busy 2 $(MAKE) test-rounds

test-rounds: # Every test, ROUNDS times, with the result of each round
	@for round in $$(seq $(or $(ROUNDS),5)); do \
		$(MAKE) test > bin/round-$$round.log 2>&1; echo "round $$round: $$(tail -n 1 bin/round-$$round.log)"; \
	done; ! grep -LE ' 0 failed(, [0-9]+ skipped)?$$' $$(seq -f 'bin/round-%g.log' $(or $(ROUNDS),5))

test-races: compiler ## The packages with concurrency, COUNT times (50) each under -race; takes an hour
	go test -race -count=$(or $(COUNT),50) -timeout 3h $(CONCURRENT_PACKAGES)

test-attacks: $(BUILD) browser ## Each test that SECURITY.md names, and raw peers that do their worst: a table of attack, route and verdict
	@go vet -tags attacks ./e2e
	@mkdir -p bin; go run ./e2e/attacks | tee bin/attacks.md

test-gate: $(BUILD) ## The generators: CASES (6000) of what pages give, with both official clients at a gateway and at a node, STEPS (20000) of the models of door and stale calls, RUNS (200) of the catalog's. GATE_SEED=1, DOOR_SEED=1, STALE_SEED=1 and CATALOG_SEED=1 give those of a run
	GATE_CASES=$(or $(CASES),6000) go test -count=1 -v -timeout 30m -run 'TestClients(TakeWhatIsGenerated|BesideTheWorstPages)' ./e2e
	DOOR_STEPS=$(or $(STEPS),20000) STALE_STEPS=$(or $(STEPS),20000) CATALOG_RUNS=$(or $(RUNS),200) \
		go test -count=1 -v -timeout 30m \
		-run 'Test(DoorAgainstAModel|RandomStaleCalls|CatalogIsWhatPagesOffer)' ./bridge/gateway

test-models: ## The models of daemons and of nodes, as processes: DAEMON_STEPS (2000) and FLEET_STEPS (3000). DAEMON_SEED=1 and FLEET_SEED=1 give those of a run
	DAEMON_STEPS=$(or $(DAEMON_STEPS),2000) go test -count=1 -v -timeout 24h -run TestRandomProcesses ./bridge/desktop/serve
	FLEET_STEPS=$(or $(FLEET_STEPS),3000) FLEET_ORDER=200 go test -count=1 -v -p 1 -timeout 24h \
		-run 'TestRandomO(perations|rder)' ./bridge/node ./bridge/node/process

# FuzzEngine spent its time on making inputs shorter, 60 s for each: 67 inputs in 40 s, and 6,543 with a bound.
# On a busy machine Go 1.26 can end a target with this error, and without an input (golang/go#75804).
fuzz: $(BUILD) ## Each decoder that reads another party's input, FUZZTIME (1m) each; an input that fails becomes a case of make test
	@for dir in $$(grep -rlE '^func Fuzz' --include='*_test.go' bridge | xargs -n 1 dirname | sort -u); do \
		for target in $$(go test -list '^Fuzz' ./$$dir | grep '^Fuzz'); do \
			go test ./$$dir -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),1m) -fuzzminimizetime 10x \
				| tee bin/fuzz.out | grep -v ': elapsed' || grep -qx '    context deadline exceeded' bin/fuzz.out || exit 1; \
		done; \
	done

vulncheck: ## Known vulnerabilities of what ships, by govulncheck; VULNDB=file:///DIR where the database is not reached
	@GOBIN=$(CURDIR)/bin go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
	@bin/govulncheck $(VULNDB:%=-db %) ./bridge/cmd/...
	@GOOS=js GOARCH=wasm bin/govulncheck $(VULNDB:%=-db %) ./wasm/...

soak: $(BUILD) browser $(PEERS) ## Tabs, agents, daemons and nodes come and go for MINUTES (3): what goes wrong, and what grows, into bin/soak. SOAK_SEED=1 gives the steps of a run
	@go vet -tags soak ./e2e
	MINUTES=$(or $(MINUTES),3) go test -count=1 -v -timeout 24h -tags soak -run 'TestSoak$$' ./e2e

test-fresh: ## Each level, and each command of the README, on a clone of its own where nothing else has run
	@.ci/fresh test-readme 'demo ONCE=1' test $(LEVELS:%=test-%) test-docs 'test-agents SHORT=1' check lint size 'bench SHORT=1'

test-readme: # The README's commands in this directory, as after a fresh clone, with the blocks that take long
	go test -count=1 -v -timeout 60m -tags fresh ./e2e/docs -run TestReadme
	@$(MAKE) build
	go test -count=1 -v ./e2e/docs -run TestBlocks/README

# gotest LEVEL,COMMAND runs a go test and keeps its events for the tally.
gotest = @mkdir -p $(RESULTS); $(GOTESTSUM) --jsonfile $(RESULTS)/$(1).json --raw-command -- $(2)

##@ To release it:
release: $(NPM) tinygo ## Make all that is released as VERSION (such as 0.2.0-rc.1) into dist/release/, and list it
	@go run ./js/build/release '$(VERSION)'
	@# GoReleaser asks for a tag and a remote, and a clone may have neither.
	@GORELEASER_CURRENT_TAG='v$(VERSION)' GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url \
		GIT_CONFIG_VALUE_0=https://github.com/pagewire/pagewire $(GORELEASER) release --skip=validate,publish,announce
	@mv dist/goreleaser/*.tgz dist/goreleaser/*.tar.gz dist/goreleaser/*.zip dist/goreleaser/*.deb dist/release/
	@go run ./js/build/release -bundles '$(VERSION)'
	@cd dist/release && ls | grep -vx NOTES.md | xargs sha256sum > ../SHA256SUMS && mv ../SHA256SUMS .
	@cd dist/release && ls -l

test-release: release browser ## Make it twice, which gives the same bytes; install it by npm, npx and install.sh; run its Vite app
	RELEASE=$(CURDIR)/dist/release go test -count=1 -timeout 60m -tags release ./js/build/release
	@$(MAKE) unpack
	RELEASE=$(CURDIR)/dist/release go test -count=1 -timeout 10m -run 'TestNpm$$' ./e2e

unpack: ## Put programs, scripts and extensions of dist/release/ in place of the build's: with BUILT=1, tests run on them
	@command -v unzip > /dev/null || .ci/debian unzip
	@rm -rf bin/pagewire{,-node} dist/{npm,extension,extension-firefox} && mkdir -p bin dist/npm
	@cd dist/release && tar -xzf pagewire-[0-9]*.tgz -C ../npm --strip-components=1 && \
		unzip -q pagewire-extension-[0-9]*.zip -d ../extension && unzip -q pagewire-extension-firefox-*.zip -d ../extension-firefox && \
		tar -xzf pagewire-[0-9]*-$(shell go env GOHOSTOS)-$(shell go env GOHOSTARCH).tar.gz -C ../../bin --strip-components=1
	@cp dist/npm/*.{js,cjs,mjs,wasm} dist/ && bin/pagewire assets write --force dist

##@ What it costs:
size: build ## Print raw, gzip and brotli size of each artefact, and the code of each package in the core; fail above a budget
	@go run ./js/build -core=$(CORE) -size

bench: tinygo-unless-go $(if $(FLEET)$(GROWTH),bench-fleet,$(if $(AGENTS),bench-agents,$(if $(STALE),bench-stale,bench-pages))) ## Measure beside others; SHORT=1: 3 minutes; AGENTS=1: what models pay; STALE=1: who acts on yesterday's page; FLEET=1: past one machine; GROWTH=1: what more tabs, agents and resources cost

bench-fleet: build browser # Nodes of a fleet, bare NATS and bare WebSockets; or growth
	go test -run '^$$' -bench '$(if $(GROWTH),Growth,Page|Change|Read|Kill)' -benchtime=1x -timeout 30m ./e2e/bench/fleet

bench-agents: build browser $(RIVALS) $(PEERS) # The price of a session in a model's context, of deltas, and of a hook
	go run ./e2e/bench -agents
	go test -run '^$$' -bench 'Of|Hostile' -benchtime=50x ./bridge/gateway/live/delta
	go test -run '^$$' -bench Hook -benchtime=200x ./bridge/cmd/pagewire

bench-stale: build browser $(RIVALS) $(PEERS) # Writes on old state: e2e/bench/stale/README.md
	go run ./e2e/bench -stale $(if $(SHORT),-short)

trace: build browser $(RIVALS) ## Where the time of a call goes, in all its processes, into e2e/bench/trace.md; as root on Linux
	go run ./e2e/bench -trace

bench-pages: size browser $(RIVALS) $(PEERS)
	go test -run '^$$' -bench . -benchmem $(if $(SHORT),-short -benchtime=1ms) ./bridge ./bridge/wire ./bridge/coalesce ./bridge/resource
	go run ./e2e/bench $(if $(SHORT),-short)

##@ What is generated, and the rest:
pictures: build browser $(DOCS) ## Take pictures anew: those of extension, inspector and README into demo/, of manual and demos into dist/pictures/; draw the icons
	@mkdir -p dist/pictures
	@PAGEWIRE_LOOK=$(CURDIR)/dist/pictures go test -count=1 ./e2e -run TestExtensionLook
	@node demo/docs/picture.mjs "$${PAGEWIRE_BROWSER:-$$(command -v chromium google-chrome chrome | head -n 1)}"
	@go test -count=1 ./bridge/desktop/inspect/inspectortest -run InspectorIsLive -pictures demo
	@$(MAKE) test-docs PICTURES=dist/pictures

site: $(DOCS) ## Make the manual's site from demo/docs/ into dist/docs/
	@cd demo/docs && node_modules/.bin/vitepress build

imports: ## Draw which packages import which, the higher above the lower
	@go run ./e2e/imports

generate: $(NPM) ## Write what idl/ generates, and the references of the manual: api.md and cli.md
	node idl/generate.mjs && node idl/reference.mjs && \
		go test -count=1 -run 'TestReference' ./bridge/cmd/pagewire ./bridge/cmd/pagewire/clientconfig -update

clean: ## Remove what is built; installed packages stay
	rm -rf bin dist bridge/assets/dist

browser: ## Make sure that a Chromium or Chrome is there (by apt-get where that is possible)
	@# On other systems a browser has no command; the programs that need one say so themselves.
	@test -n "$$PAGEWIRE_BROWSER$$(command -v $(BROWSERS))" || test "$$(uname)" != Linux || .ci/debian chromium chromium-sandbox

compiler: # Make sure that a C compiler is there, which -race needs (by apt-get where that is possible)
	@test "$$(go env CGO_ENABLED)" = 1 || .ci/debian gcc libc6-dev

engines: ## Make sure that Firefox ESR and WebKitGTK with its driver are there (by apt-get where that is possible)
	@for program in firefox-esr WebKitWebDriver Xvfb; do command -v $$program > /dev/null || \
		exec .ci/debian firefox-esr webkit2gtk-driver xvfb; done

node:
	@command -v npm > /dev/null && node -e 'process.exitCode = +(parseInt(process.versions.node) < 20)' || \
		{ echo "node: Node 20 or newer with npm is needed (found: $$(node --version 2>/dev/null || echo none)): https://nodejs.org/en/download" >&2; exit 1; }

$(NPM) $(PEERS) $(HOSTS) $(RIVALS) $(VIEWS) $(PAGES) $(SUITES) $(DOCS) $(ECOSYSTEM) $(FRAMEWORKS) $(AGENT_PROGRAMS): %/node_modules/.package-lock.json: %/package.json %/package-lock.json | node
	@# In DOCS, ECOSYSTEM and PROGRAMS some packages for other systems are missing in some registries and in the lock
	@# file: npm 11's ci wants all.
	cd $* && npm $(if $(filter $(DOCS) $(ECOSYSTEM) $(PROGRAMS),$@),install --no-save,ci)
	@touch $@

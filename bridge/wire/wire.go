package wire

// Protocol versions, as MCP spells them. Versions compare as text.
const (
	// Modern is the stateless era's version: every request has it in its _meta.
	Modern = "2026-07-28"
	// Legacy is the newest version that initialize negotiates.
	Legacy = "2025-11-25"
)

// IsLegacy reports whether initialize may negotiate version. It refuses 2025-03-26, the only one
// that would need batches.
func IsLegacy(version string) bool {
	switch version {
	case "2024-11-05", "2025-06-18", Legacy:
		return true
	}
	return false
}

// Keys of _meta.
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo     = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo     = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
)

// Methods.
const (
	Initialize           = "initialize"
	Ping                 = "ping"
	Discover             = "server/discover"
	ResourcesList        = "resources/list"
	TemplatesList        = "resources/templates/list"
	ResourcesRead        = "resources/read"
	ResourcesSubscribe   = "resources/subscribe"
	ResourcesUnsubscribe = "resources/unsubscribe"
	Listen               = "subscriptions/listen"
	Cancelled            = "notifications/cancelled"
	Acknowledged         = "notifications/subscriptions/acknowledged"
	ResourceUpdated      = "notifications/resources/updated"
	ResourcesListChanged = "notifications/resources/list_changed"
	ToolsList            = "tools/list"
	ToolsCall            = "tools/call"
	ToolsListChanged     = "notifications/tools/list_changed"
	Progress             = "notifications/progress"
)

// MCP Events: the key of the extension, its methods, and the notifications of a stream.
const (
	EventsExtension   = "io.modelcontextprotocol/events"
	EventsList        = "events/list"
	EventsPoll        = "events/poll"
	EventsStream      = "events/stream"
	EventsSubscribe   = "events/subscribe"
	EventsUnsubscribe = "events/unsubscribe"
	EventsActive      = "notifications/events/active"
	EventsEvent       = "notifications/events/event"
	EventsHeartbeat   = "notifications/events/heartbeat"
	EventsError       = "notifications/events/error"
	EventsTerminated  = "notifications/events/terminated"
)

// Skills over MCP (SEP-2640): the key of the extension, and its methods.
const (
	SkillsExtension = "io.modelcontextprotocol/skills"
	SkillsList      = "skills/list"
	SkillsGet       = "skills/get"
)

// Error codes: JSON-RPC 2.0 section 5.1, and two of MCP.
const (
	ParseError         = -32700
	InvalidRequest     = -32600
	MethodNotFound     = -32601
	InvalidParams      = -32602
	InternalError      = -32603
	NotFoundLegacy     = -32002 // legacy era only; the modern era forbids it and uses InvalidParams
	UnsupportedVersion = -32022 // modern era only
)

package bridge

// Options configure an engine. The zero value works, except that its Rule admits nothing.
type Options struct {
	// Name and Version are shown to agents as serverInfo. Default "pagewire" and "0".
	Name, Version string
	// Instructions are shown to agents at the start of a session. Default none.
	Instructions string
	// Rule sets which URIs may be registered and read.
	Rule Rule
	// NoSubscriptions switches subscriptions off: the capability is not declared,
	// resources/subscribe is MethodNotFound, and a listen is acknowledged without
	// resourceSubscriptions (platformatic/mcp#96).
	NoSubscriptions bool
	// Several means that several engines serve the same agents. A modern agent may use another
	// engine with each request, and may learn of a change there before this engine does. So its
	// reads never join a read that has begun, and the engine also asks the host for reads of URIs
	// without a resource.
	Several bool
	// Tools offers the tools of the host, which must be a ToolHost.
	Tools bool
	// UnlistedTools means that the host has tools that it does not list. The engine passes it calls
	// of any name, and it answers NotFound for a tool that does not exist.
	UnlistedTools bool
	// Events offers MCP Events of the host, which must be an EventHost. A page's core has none.
	Events bool
	// HeartbeatInterval is the time between two heartbeats of an event stream. Default 15,000 ms:
	// clients give up after a minute.
	HeartbeatInterval Time
	// SealCursor encrypts the cursors of lists of resources, and OpenCursor returns what it has
	// encrypted, or "" for any other text. An agent would learn from a cursor how many resources
	// there are that it does not see. Default none.
	SealCursor, OpenCursor func(cursor string) string
	// Skills are served to agents. Default none.
	Skills []Skill
	// ExposeErrors shows agents the host's Detail of a failed read. It is off because a page's
	// messages may hold secrets.
	ExposeErrors bool
	// UpdateInterval is the least time between two updates of one URI. Default 100 ms; negative
	// means none, for a host whose resources are coalesced already.
	UpdateInterval Time
	// UpdateBurst is the number of changes of one URI in quick succession that are announced
	// immediately, one by one. A longer series is announced once per UpdateInterval. Default 3: one
	// action of a person rarely makes more. A resource's own interval allows no burst.
	UpdateBurst int
	// ListInterval is the least time between two list_changed. Default 16 ms; negative means none.
	ListInterval Time
	// ReadTimeout is how long a read, or the consent to a subscription, may take. Default 30,000
	// ms.
	ReadTimeout Time
	// AwaitTimeout is how long requests wait for a host that does not know yet what it offers
	// (Engine.Await). Default 2,000 ms.
	AwaitTimeout Time
	// ToolTimeout is how long a tool may take. Default 600,000 ms: some ask a person.
	ToolTimeout Time
	// PageSize and PageBytes bound one page of a listing: the number of resources, or tools, and
	// their size as JSON text. A page holds at least one, and more than these if the list would
	// otherwise have too many pages. Default 200, and 1 MiB.
	PageSize, PageBytes int
	// Limits bound the memory that ports and hosts can take.
	Limits Limits
}

// A Skill is a text for models that an engine serves (SEP-2640): skills/list and skills/get
// describe it, and resources/read gives it. It never changes while the engine lives. The core of a
// page has none: see restrict.go.
type Skill struct {
	// URI is that of its SKILL.md: skill://AUTHORITY/NAME/SKILL.md.
	URI string
	// Entry is the JSON text of the skill in lists: uri, frontmatter and resources.
	Entry string
	// Contents is the JSON text of MCP's contents of the file, an array.
	Contents string
}

// Limits bound an engine. For each, 0 means the default and a negative number means no bound.
type Limits struct {
	MessageBytes int // of a message from an agent. Default 1 MiB
	Depth        int // of nesting in a message. Default 64; never unbounded
	// Why may an id have no more than 1,024 bytes? Each message of a listen repeats its id. An id
	// of a megabyte on 64 listens makes 64 MB for one change, and wasm's memory never shrinks.
	IDBytes       int // of the id of a request, or a progress token, as JSON text. Default 1,024
	URIBytes      int // of a URI. Default 8,192
	Resources     int // registered at once. Default 10,000
	Ports         int // open at once. Default 1,024
	Subscriptions int // of one port, its listens' URIs included. Default 1,024
	Listens       int // of one port. Default 64
	Streams       int // of events, of one port. Default 64
	Calls         int // of one port: reads, tool calls and consents under way. Default 64
	Tools         int // of the host. Default 1,000
	ResultBytes   int // of the contents of one read, as JSON text. Default 16 MiB
	// updates per second on one port, over all URIs; also the largest burst. Default 1,000
	UpdateRate int
}

func (o Options) withDefaults() Options {
	pick := func(v *int, def int) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 1<<31 - 1
		}
	}
	l := &o.Limits
	pick(&l.MessageBytes, 1<<20)
	pick(&l.Depth, 64)
	l.Depth = min(l.Depth, maxDepth)
	pick(&l.IDBytes, 1024)
	pick(&l.URIBytes, 8192)
	pick(&l.Resources, 10_000)
	pick(&l.Ports, 1024)
	pick(&l.Subscriptions, 1024)
	pick(&l.Listens, 64)
	pick(&l.Streams, 64)
	pick(&l.Calls, 64)
	pick(&l.Tools, 1000)
	pick(&l.ResultBytes, 16<<20)
	pick(&l.UpdateRate, 1000)
	l.UpdateRate = min(l.UpdateRate, 1_000_000) // in thousandths it must fit 31 bits
	pick(&o.PageSize, 200)
	pick(&o.PageBytes, 1<<20)
	pickTime := func(v *Time, def Time) {
		switch {
		case *v == 0:
			*v = def
		case *v < 0:
			*v = 0
		}
	}
	pickTime(&o.UpdateInterval, 100)
	pick(&o.UpdateBurst, 3)
	pickTime(&o.ListInterval, 16)
	pickTime(&o.ReadTimeout, 30_000)
	pickTime(&o.AwaitTimeout, 2_000)
	pickTime(&o.ToolTimeout, 600_000)
	pickTime(&o.HeartbeatInterval, 15_000)
	if o.Name == "" {
		o.Name = "pagewire"
	}
	if o.Version == "" {
		o.Version = "0"
	}
	return o
}

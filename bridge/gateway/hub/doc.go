//go:build !js

// Package hub makes the gateways of one user on one machine one. Every agent starts its own `pagewire serve`, and all
// of them shall show the same pages: the first that runs is the hub, the others join it, and when it dies or hangs one
// of them takes its place.
//
// They meet in a directory of the user's (package userdir), where nobody else can be the hub or reach it. The
// process that holds the lock with the highest number is the hub, and listens on the socket of that number. A
// process that ends, however it ends, leaves the lock to the next. A process that hangs keeps it. Then a joiner
// takes a lock with a higher number. If the old hub wakes up, it sees that, and joins (generation.go). PROTOCOL.md
// has what is said over the socket. A joiner keeps its own agents' sessions. To its Gateway the hub is one page that
// has all the resources. Subscriptions survive because the joiner's engine has them.
//
// The TCP port has no part in that. Pages, the inspector and agents on HTTP find the hub there. The hub takes the
// port when it is free. Where it is not, agents go on without these.
//
// It never sends a secret, for both ends of the socket are this user's by the kernel's word. It never deletes what it
// has not made, and where the directory cannot be used it says so, and serves alone.
package hub

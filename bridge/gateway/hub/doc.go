//go:build !js

// Package hub makes the gateways of one user on one machine one. Every agent starts its own `pagewire serve`, and all
// of them shall show the same pages: the first that runs is the hub, the others join it, and when it dies or hangs one
// of them takes its place.
//
// They meet in a directory of the user's (package userdir), where nobody else can be the hub or reach it. Who holds the
// lock with the highest number is the hub, and listens on the socket of that number. A process that ends, however it
// ends, leaves the lock to the next. One that hangs keeps it: then a joiner takes a lock with a higher number, and the
// old hub, should it wake, sees that and joins (generation.go). PROTOCOL.md has what is said over the socket. A joiner
// keeps its own agents' sessions; to its Gateway the hub is one page that has all the resources. Subscriptions survive
// since the joiner's engine has them.
//
// The TCP port is no part of that. It is where pages, the inspector and agents on HTTP find the hub, which takes it
// when it is free; where it is not, agents go on without these.
//
// It never sends a secret, for both ends of the socket are this user's by the kernel's word. It never deletes what it
// has not made, and where the directory cannot be used it says so, and serves alone.
package hub

package bridge

// restricts is false: see restrict.go.
const restricts = false

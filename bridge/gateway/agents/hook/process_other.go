//go:build !linux && !darwin

package hook

// look knows no process. Hooks are then known by their conversation alone.
func look(int) (process, bool) { return process{}, false }

package skills

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rules are agentskills.io's. Hosts compare the frontmatter field by field, so its values must be plain strings.
func TestSkills(t *testing.T) {
	entries, err := Files.ReadDir(".")
	if err != nil || len(entries) != len(Names) {
		t.Fatalf("there are %v (%v), and Names are %v", entries, err, Names)
	}
	for _, name := range Names {
		text := Text(name)
		front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
		fields := map[string]string{}
		for line := range strings.SplitSeq(front, "\n") {
			key, value, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(value[:1], "\"'[{>|&*!%@`#") || strings.Contains(value, ": ") ||
				strings.Contains(value, " #") {
				t.Errorf("%s: %q is no plain string of YAML", name, line)
			}
			fields[key] = value
		}
		if !ok || !strings.HasPrefix(text, "---\nname: ") || strings.Contains(text, "\r") {
			t.Errorf("%s has no frontmatter", name)
		}
		if fields["name"] != name || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name) {
			t.Errorf("%s: its name is %q", name, fields["name"])
		}
		if n := len(fields["description"]); n < 1 || n > 1024 {
			t.Errorf("%s: its description has %d characters", name, n)
		}
		if strings.Count(body, "\n") >= 500 || len(body)/4 > 5000 {
			t.Errorf("%s is too long for a model's context", name)
		}
		for key := range fields {
			if key != "name" && key != "description" && key != "license" {
				t.Errorf("%s: %s is not a field of every host", name, key)
			}
		}
		found, err := os.ReadFile(filepath.Join("../../../.agents/skills", name, "SKILL.md"))
		if err != nil || string(found) != text {
			t.Errorf("%s is not where agents look in a repository: %v", name, err)
		}
	}
}

// Hosts compare the digest with the contents from resources/read, and the frontmatter field by field.
func TestServedSkills(t *testing.T) {
	if one, other := Served(), Served(); &one[0] != &other[0] {
		t.Error("each gateway has skills of its own")
	}
	for _, s := range Served() {
		var entry struct {
			URI         string
			Frontmatter map[string]string
			Resources   []struct {
				URI, Digest string
				Size        int
			}
		}
		var contents []struct{ URI, MIMEType, Text string }
		if err := errors.Join(json.Unmarshal([]byte(s.Entry), &entry), json.Unmarshal([]byte(s.Contents), &contents)); err != nil {
			t.Fatal(err)
		}
		sum := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(contents[0].Text)))
		if entry.URI != s.URI || contents[0].URI != s.URI || contents[0].MIMEType != "text/markdown" ||
			len(entry.Resources) != 1 || entry.Resources[0].Digest != sum ||
			entry.Resources[0].Size != len(contents[0].Text) || contents[0].Text != Text(entry.Frontmatter["name"]) ||
			!strings.HasSuffix(s.URI, "/"+entry.Frontmatter["name"]+"/SKILL.md") || len(entry.Frontmatter) != 3 {
			t.Errorf("%s is %+v, and its contents are %.100s", s.URI, entry, s.Contents)
		}
	}
}

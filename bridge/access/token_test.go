package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "pagewire", "token")
	t.Setenv(TokenFileEnv, path)
	token, err := Token("")
	if err != nil || len(token) != 43 {
		t.Fatalf("the token is %q, %v", token, err)
	}
	if again, err := Token(path); again != token {
		t.Errorf("then it is %q, %v", again, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := Token(""); err == nil || !strings.HasPrefix(err.Error(), "the token file: "+path+" is empty") {
		t.Errorf("an empty file gives %q, %v", token, err)
	}
}

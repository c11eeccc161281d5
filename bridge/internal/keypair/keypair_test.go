package keypair

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A renewed key is read, even if it could not be at the first handshake after that, and its file does not change any
// more: it was still root's, or the process had no descriptor left.
func TestRenewedPairIsReadAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	write := func(file, kind string, der []byte, at time.Time) {
		t.Helper()
		testkit.OK(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		testkit.OK(t, os.Chtimes(file, at, at))
	}
	first, next := testkit.Authority(t).Certificates[0], testkit.Authority(t).Certificates[0]
	keyOf := func(private any) []byte { return testkit.Must(x509.MarshalPKCS8PrivateKey(private))(t) }
	now := time.Now()
	write(cert, "CERTIFICATE", first.Certificate[0], now)
	write(key, "PRIVATE KEY", keyOf(first.PrivateKey), now)
	var log bytes.Buffer
	p := testkit.Must(Open(cert, key, slog.New(slog.NewTextHandler(&log, nil))))(t)
	shows := func(want []byte) {
		t.Helper()
		if pair := testkit.Must(p.get())(t); !bytes.Equal(pair.Certificate[0], want) {
			t.Errorf("it shows another certificate: %s", &log)
		}
	}
	renewed := now.Add(time.Minute)
	write(cert, "CERTIFICATE", next.Certificate[0], renewed)
	write(key, "PRIVATE KEY", nil, renewed)
	for range 10 {
		shows(first.Certificate[0])
	}
	write(key, "PRIVATE KEY", keyOf(next.PrivateKey), renewed)
	p.failed = p.failed.Add(-retryAfter)
	shows(next.Certificate[0])
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("of one failure it says %d times: %s", n, &log)
	}
}

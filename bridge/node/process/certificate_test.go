package process

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// A renewed certificate is used without a restart, for clients and for nodes that join. These need no secret.
func TestCertificateThatIsRenewed(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, kind string, ders ...[]byte) {
		var text []byte
		for _, der := range ders {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
		}
		if err := os.WriteFile(file(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use := func(own *tls.Config) {
		key, err := x509.MarshalPKCS8PrivateKey(own.Certificates[0].PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		write("cert", "CERTIFICATE", own.Certificates[0].Certificate[0])
		write("key", "PRIVATE KEY", key)
	}
	shows := func(addr string, own *tls.Config) bool { // each certificate is its own authority
		c, err := tls.Dial("tcp", addr, own)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	first, next := testkit.Authority(t), testkit.Authority(t)
	write("ca", "CERTIFICATE", first.Certificates[0].Certificate[0], next.Certificates[0].Certificate[0])
	use(first)
	f := newFleet(t, 0)
	start := func() *member {
		return f.start(func(o *Options) {
			o.SecretFile, o.TLSCert, o.TLSKey, o.NodeCA = "", file("cert"), file("key"), file("ca")
			o.ClusterCert, o.ClusterKey, o.ClusterCA = file("cert"), file("key"), file("ca")
		})
	}
	m := start()
	if !shows(m.listen, first) || shows(m.listen, next) {
		t.Error("the first certificate is not shown")
	}
	use(next)
	testkit.Eventually(t, "the next one is shown", func() bool { return shows(m.listen, next) })
	start()
	counts(t, m.admin, "nodes", 2)
}

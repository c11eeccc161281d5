package uplink

import "time"

func RenewAtLeast(o *Options, pause time.Duration) { o.renewAtLeast = pause }

package main

// ballastBytes is how much the collector believes to be in use besides what is.
const ballastBytes = 16 << 20

// ballast makes the collector wait until that much garbage has come, as long as it is kept: a node at rest lives in a few
// megabytes, and under load they would be collected dozens of times a second. It is never touched, so it takes no memory but
// address space, and unlike a higher GOGC it does not multiply what a node with much in memory takes.
func ballast() []byte { return make([]byte, ballastBytes) }

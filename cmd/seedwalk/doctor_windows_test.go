package main

// checksHere are those of this platform that must find no fault on any machine.
var checksHere = []string{"system", "environment", "rights", "loopback port", "output"}

package main

// checksHere are those of this platform that must find nothing on any machine.
var checksHere = []string{"system", "environment", "rights", "loopback port", "output"}

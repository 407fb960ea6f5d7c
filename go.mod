module github.com/seedwalk/seedwalk

go 1.26

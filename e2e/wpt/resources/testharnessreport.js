// testharnessreport.js is for whoever runs the tests to fill; wpt_test.go needs nothing of it.

/// <reference path="./pagewire.d.ts" />

// The script installs globals and exports nothing.
export {};

// VitePress' own theme, with the colours of js/parts/tokens.css.
import theme from "vitepress/theme";
import "./style.css";

export default theme;

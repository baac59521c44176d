import { createRoot } from "react-dom/client";
import "./style.css";

const place = document.getElementById("app");
if (place) createRoot(place).render(<h1>allranks studio</h1>);

// Saves files in the browser.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { fetchFile } from "../api";

const KEPT_MS = 60000; // the browser may first ask the user where to save the file

export function save(name: string, content: Blob): void {
    const address = URL.createObjectURL(content);
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), KEPT_MS);
}

// Saves the file that the API returns for `path`. Shows a message if that fails.
export function Download({ path, children }: { path: string; children: ComponentChildren }) {
    const [said, setSaid] = useState("");
    const bring = async () => {
        setSaid("Creating the file…");
        try {
            const { name, content } = await fetchFile(path);
            save(name, content);
            setSaid("");
        } catch (failure) {
            setSaid((failure as Error).message);
        }
    };
    return (
        <>
            <button type="button" class="link-button" onClick={() => void bring()}>
                {children}
            </button>{" "}
            <span role="status">{said}</span>
        </>
    );
}

import { useEffect, useRef } from "preact/hooks";
import { bindings } from "../keys";
import { helpOpen } from "../store";

export function Help() {
    const dialog = useRef<HTMLDialogElement>(null);
    const open = helpOpen.value;
    useEffect(() => {
        if (open && !dialog.current?.open) {
            dialog.current?.showModal();
        } else if (!open) {
            dialog.current?.close();
        }
    }, [open]);
    const places = [...new Set(bindings.map((binding) => binding.where))];
    return (
        <dialog
            ref={dialog}
            class="help"
            aria-labelledby="help-title"
            onClose={() => (helpOpen.value = false)}
        >
            <h2 id="help-title" tabIndex={-1} autofocus>
                Keys and gestures
            </h2>
            {places.map((place) => (
                <section key={place}>
                    <h3>{place}</h3>
                    <dl>
                        {bindings
                            .filter((binding) => binding.where === place)
                            .map((binding) => (
                                <div key={binding.keys}>
                                    <dt>
                                        <kbd>{binding.keys}</kbd>
                                    </dt>
                                    <dd>{binding.does}</dd>
                                </div>
                            ))}
                    </dl>
                </section>
            ))}
            <button type="button" onClick={() => (helpOpen.value = false)}>
                Close
            </button>
        </dialog>
    );
}

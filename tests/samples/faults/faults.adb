--  Each line of input makes faults that Ada turns into exceptions, and prints what was caught.
with Ada.Command_Line;
with Ada.Text_IO; use Ada.Text_IO;

procedure Faults is
   type Node;
   type Node_Access is access all Node;
   type Node is record
      Value : Integer := 0;
      Next  : Node_Access;
   end record;

   Count : Natural := 0;

   function Follow (From : Node_Access) return Integer with No_Inline;
   function Second (From : Node_Access) return Integer with No_Inline;
   function Divide (A, B : Integer) return Integer with No_Inline;
   function Endless (N : Integer) return Integer with No_Inline;

   function Follow (From : Node_Access) return Integer is (From.Value);
   function Second (From : Node_Access) return Integer is (Follow (From.Next) + 1);
   function Divide (A, B : Integer) return Integer is (A / B);

   function Endless (N : Integer) return Integer is
      Values : array (0 .. 49) of Integer := (others => N);
   begin
      return Endless (N + 1) + Values (N mod 50);
   end Endless;

   procedure Batch is
      task Worker;
      task body Worker is
      begin
         if Endless (1) > 0 then
            Put_Line ("it ends");
         end if;
      exception
         when Storage_Error => Put_Line ("the task's stack");
      end Worker;
   begin
      for I in 1 .. 20 loop
         begin
            Count := Count + Follow (null);
         exception
            when Constraint_Error => Count := Count + 1;
         end;
         begin
            Count := Count + Second (new Node);
         exception
            when Constraint_Error => Count := Count + 1;
         end;
         begin
            Count := Count + Divide (I, I - I);
         exception
            when Constraint_Error => Count := Count + 1;
         end;
      end loop;
   end Batch;

begin
   loop
      if Get_Line = "" then
         Count := 0;
         Batch;
         begin
            Count := Count + Endless (1);
         exception
            when Storage_Error => Count := Count + 1000;
         end;
         Put_Line ("caught" & Count'Image);
      end if;
   end loop;
exception
   when End_Error => Ada.Command_Line.Set_Exit_Status (3);
end Faults;
